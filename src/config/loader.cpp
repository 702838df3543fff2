// YAML and overrides into the keys of a struct; messages for keys that do not exist.
#include "normlab/config/loader.h"

#include <algorithm>

#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"

namespace normlab::config {
namespace {

const Key* find_key(const Keys& keys, std::string_view path) {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
  return it != keys.end() ? &*it : nullptr;
}

std::string_view section_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string folded(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '-' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

struct OtherName {
  std::string_view names;  // small letters without '_'
  std::string_view path;
  std::string_view note = {};
};

constexpr OtherName kOtherNames[] = {
    {"epoch epochs nepochs numepochs maxepochs numtrainepochs", "train.steps",
     " (there are no epochs; one is about tokens to train on / (train.batch_size x train.grad_accumulation x "
     "model.context_length) steps)"},
    {"iters maxiters numiters iterations maxsteps numsteps trainsteps", "train.steps"},
    {"batch bs microbatchsize trainbatchsize perdevicetrainbatchsize", "train.batch_size"},
    {"gradaccum gradaccumsteps gradientaccumulation gradientaccumulationsteps", "train.grad_accumulation"},
    {"device cuda gpu gpus numgpus accelerator", "train.threads", " (it trains on the CPU)"},
    {"nthreads numthreads workers numworkers", "train.threads"},
    {"learningrate maxlr baselr", "optimizer.lr"},
    {"clip gradnorm maxgradnorm clipgradnorm gradientclipval", "optimizer.grad_clip"},
    {"warmup warmupiters numwarmupsteps", "schedule.warmup_steps"},
    {"nembd embeddim hiddensize hiddendim dim", "model.d_model"},
    {"nlayer numlayers numhiddenlayers layers depth", "model.n_layers"},
    {"nhead numheads numattentionheads heads", "model.n_heads"},
    {"blocksize seqlen seqlength sequencelength maxseqlen maxseqlength nctx npositions", "model.context_length"},
    {"ffdim ffndim intermediatesize dimfeedforward ninner", "model.d_ff"},
    {"dataset datapath trainfile traindata", "data.source"},
};

const OtherName* other_name(const Keys& keys, std::string_view name) {
  std::string word = folded(name);
  std::erase(word, '_');
  for (const OtherName& other : kOtherNames)
    if (text(' ', other.names, ' ').find(text(' ', word, ' ')) != std::string::npos && find_key(keys, other.path))
      return &other;
  return nullptr;
}

// What the user may have meant by `name` in `section`: the same name but for case and '-', one of another section,
// what other trainers call so, one that is spelt alike here, one spelt alike elsewhere.
std::string suggestion(const Keys& keys, std::string_view section, std::string_view name) {
  std::vector<std::string> here, elsewhere, paths;
  for (const Key& key : keys) {
    const bool same = folded(key.name()) == folded(name);
    if (section_of(key.path) == section) {
      if (same) return did_you_mean(name, {std::string(key.name())});
      here.emplace_back(key.name());
    } else {
      if (same) paths.push_back(key.path);
      elsewhere.emplace_back(key.name());
    }
  }
  if (!paths.empty()) return text("; it belongs elsewhere: ", join(paths, " or "));
  if (const OtherName* other = other_name(keys, name)) return text("; here it is ", other->path, other->note);
  if (std::string hint = did_you_mean(name, here); !hint.empty()) return hint;
  const std::string far = nearest(name, elsewhere);
  for (const Key& key : keys)
    if (!far.empty() && key.name() == far) paths.push_back(key.path);
  if (!paths.empty()) return text("; did you mean ", join(paths, " or "), "?");
  return text("; it has ", join(here, ", "), " (normlab train --help-config lists all keys)");
}

[[noreturn]] void fail_unknown(const Keys& keys, std::string_view section, const Yaml& given, std::string_view source) {
  const std::string where = section.empty() ? "the configuration" : text("the section ", section);
  std::string hint;
  if (find_key(keys, given.key) != nullptr)
    hint =
        text("; in a file, write ", given.key.substr(given.key.rfind('.') + 1), " under ", section_of(given.key), ":");
  else
    hint = suggestion(keys, section, given.key);
  throw ConfigError(text(at_place(source, given.key_at), where, " has no key '", excerpt(given.key), "'", hint));
}

void load_section(const Keys& keys, const std::string& section, const Yaml& tree, std::string_view source,
                  Origins* origins) {
  if (tree.kind == Yaml::Kind::null) return;
  if (tree.kind != Yaml::Kind::mapping) {
    const std::string what = section.empty() ? "a configuration" : text(section, ": a section");
    const std::string example = section.empty() ? "'key: value'" : text("such as ", section, ".KEY");
    throw ConfigError(
        text(at_place(source, tree.at), what, " takes keys (", example, "), not ",
             tree.kind == Yaml::Kind::scalar ? text("'", excerpt(tree.text), "'") : "a list",
             tree.text.find(':') != std::string::npos && !tree.quoted ? "; a space is missing after the colon" : ""));
  }
  for (const Yaml& child : tree.children) {
    const std::string path = section.empty() ? child.key : section + "." + child.key;
    const Key* key = child.key.find('.') == std::string::npos ? find_key(keys, path) : nullptr;
    if (key == nullptr) fail_unknown(keys, section, child, source);
    if (key->is_section()) {
      load_section(keys, path, child, source, origins);
    } else {
      key->read(child, {source, path, key->type, key->range}, key->member);
      if (origins != nullptr)
        (*origins)[path] = source == kCommandLine ? std::string(source) : text(source, ':', child.key_at.line);
    }
  }
}

}  // namespace

void load_keys(const Keys& keys, const Yaml& tree, std::string_view source, Origins* origins) {
  load_section(keys, "", tree, source, origins);
}

void override_keys(const Keys& keys, std::span<const std::string> overrides, Origins* origins) {
  for (const std::string& given : overrides) {
    const std::size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0)
      throw ConfigError(text(kCommandLine, ": '", excerpt(given), "' is not an override; write key=value"));
    const std::string path = given.substr(0, equals);
    Yaml value = parse_yaml_value(std::string_view(given).substr(equals + 1), text(kCommandLine, ": ", excerpt(path)));
    load_keys(keys, nest(path, std::move(value)), kCommandLine, origins);
  }
}

std::string setting_hint(const Keys& keys, std::string_view name, std::string_view value) {
  std::vector<std::string> paths;
  for (const Key& key : keys)
    if (!key.is_section() && (folded(key.name()) == folded(name) || key.path == folded(name)))
      paths.push_back(key.path);
  const OtherName* other = other_name(keys, name.substr(name.rfind('.') + 1));
  if (paths.empty() && other != nullptr && !other->note.empty()) return text("; here it is ", other->path, other->note);
  if (paths.empty() && other != nullptr) paths.emplace_back(other->path);
  if (paths.empty() && name.find('.') != std::string_view::npos) paths.emplace_back(name);
  return paths.size() == 1 ? text("; a setting is written ", paths[0], '=', value) : "";
}

std::string key_value(const Keys& keys, std::string_view path) {
  const Key* key = find_key(keys, path);
  if (key != nullptr && !key->is_section()) return key->value();
  if (key != nullptr) throw ConfigError(text(path, " is a section, not a key"));
  Yaml given;
  given.key = path.substr(path.rfind('.') + 1);
  fail_unknown(keys, section_of(path), given, kCommandLine);
}

std::vector<Difference> key_differences(const Keys& left, const Keys& right) {
  std::vector<Difference> out;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i].is_section()) continue;
    std::string a = left[i].value(), b = right[i].value();
    if (a != b) out.push_back({left[i].path, std::move(a), std::move(b)});
  }
  return out;
}

}  // namespace normlab::config
