// The sentences of the tales. A sentence ends with the rule of what may follow it; alternatives of one rule begin alike
// up to a letter, so that each text has one derivation. Sentences are short and full of words to choose, and what is
// remembered comes again soon, so that a model that sees 64 characters loses little.
#include "tales.h"

namespace normlab {
namespace {

const std::vector<Rule> kBeginnings{
    {"tale", {"{opening} {custom} {trouble}\n"}},
    {"opening",
     {
         "Once {a trait} {new trade} named {new name} lived {side} the {look} {new place}.",
         "Long ago {new name} the {trait} {new trade} lived {side} the {look} {new place}.",
         "Near the {look} {new place} lived {a trait} {new trade} named {new name}.",
         "Far away, {side} the {look} {new place}, lived {new name} the {trait} {new trade}.",
         "There was {a trait} {new trade} named {new name} {side} the {look} {new place}.",
         "Do you know {new name}, the {trait} {new trade} from the {look} {new place}?",
     }},
    {"custom",
     {
         "{He} had {a colour} {garment}, {a colour} {pet} and no {riches}.",
         "{He} loved {treat} and {joy}.",
         "{He} could {skill} and {art}.",
         "{He} wished to {wish}.",
         "{He} never {vice} and always {virtue}.",
         "{He} kept {number} {pet}s in the {room}.",
         "{He} dreamed of {number} {dream}.",
         "{He} sold {taste} {dish}s and {colour} {garment}s.",
         "{He} got up, {chore} and {nightly}.",
         "{He} knew all about {dream} and {treat}.",
     }},
    {"trouble",
     {
         "One {weather} {daytime} {he} lost {his} {fine} {stuff} {new thing}. {search}",
         "One {weather} {daytime} {he} dropped {his} {fine} {new thing} in the {dark} {wild}. {search}",
         "One {weather} {daytime} {he} met {a kind} {new animal} in the {dark} {wild}. {plea}",
         "One {weather} {daytime} {he} found {a kind} {new animal} in {a trap}. {rescue}",
         "One {weather} {daytime} {he} took {his} {fine} {stuff} {new thing} to the {goal}. {bargain}",
         "One {weather} {daytime} {he} dug up {a fine} {stuff} {new thing}. {magic}",
         "In {month} {a kind} {new animal} came to the {room}. {plea}",
         "That {month} {a odd} {stranger} gave {him} {a fine} {stuff} {new thing}. {magic}",
         "But in {month} {a odd} {stranger} stole {his} {fine} {new thing}. {search}",
     }},
};

const std::vector<Rule> kLost{
    {"search",
     {
         "{He} looked {side} the {furniture}. {helper}",
         "{He} asked the {person} and {a odd} {stranger}. {helper}",
         "{He} sat down on {a seat} and {wept}. {helper}",
         "{He} searched for {number} days. {helper}",
         "{He} offered {number} {wares} for it. {helper}",
         "{He} lay in the {room} and {wept}. {helper}",
     }},
    {"helper",
     {
         "Then {a kind} {new animal} came out of the {wild}. {hint}",
         "At last {a kind} {new animal} took pity. {hint}",
         "But {a kind} {new animal} had seen it all. {hint}",
         "Under the {furniture} sat {a kind} {new animal}. {hint}",
         "From the {wild} came {a kind} {new animal}. {hint}",
     }},
    {"hint",
     {
         "\"Look {side} the {new hideout},\" it {cried}. {find}",
         "\"I saw your {thing} {side} the {new hideout},\" it {cried}. {find}",
         "It ate {a taste} {dish} and ran to the {new hideout}. {find}",
         "It dug {side} the {new hideout} and {cried}. {find}",
         "It ran {number} times around the {new hideout}. {find}",
     }},
    {"find",
     {
         "And there lay the {thing}! {thanks}",
         "And truly, the {thing} {did} by the {hideout}. {thanks}",
         "Right there the {thing} {did}. {thanks}",
         "Among {number} {wares} lay the {thing}. {thanks}",
     }},
    {"thanks",
     {
         "{He} kissed the {animal} on the nose. {end}",
         "{He} gave the {animal} {a taste} {dish}. {end}",
         "{He} made {a colour} {garment} for the {animal}. {end}",
         "{He} took the {animal} home to its {home}. {end}",
         "{He} sang, and the {animal} {cried}. {end}",
     }},
};

const std::vector<Rule> kKindness{
    {"plea",
     {
         "\"Give me {a taste} {dish},\" it {cried}. {answer}",
         "\"May I sleep in the {room}?\" it {cried}. {answer}",
         "\"Teach me to {skill},\" it {cried}. {answer}",
         "\"I have lost my {home},\" said the {animal}. {answer}",
         "\"I am cold,\" said the {animal}. {answer}",
     }},
    {"answer",
     {
         "{He} gave the {animal} {a taste} {dish}. {reward}",
         "{He} gladly did so for {number} days. {reward}",
         "{He} took the {animal} to the {room}. {reward}",
         "{He} nodded and brought {a colour} {garment}. {reward}",
     }},
    {"rescue",
     {
         "{He} set it free and gave it {a taste} {dish}. {reward}",
         "{He} wrapped it in {a colour} {garment}. {reward}",
         "{He} took the {animal} home to its {home}. {reward}",
         "{He} sang until the {animal} {cried}. {reward}",
     }},
    {"reward",
     {
         "The next {daytime} it brought {him} {a fine} {stuff} {new thing}. {magic}",
         "So the {animal} gave {him} {a fine} {stuff} {new thing}. {magic}",
         "\"Take this {fine} {stuff} {new thing},\" it {cried}. {magic}",
         "From then on the {animal} {chore} for {him}. {end}",
         "And the {animal} showed {him} {number} {wares} in its {home}. {end}",
     }},
};

const std::vector<Rule> kMagic{
    {"magic",
     {
         "Every {daytime} the {thing} {did}. {wonder}",
         "When {he} {gladly}, the {thing} {did}. {wonder}",
         "It was no common {thing}: it {did} when somebody {vice}. {wonder}",
         "After {number} days the {thing} {did}. {wonder}",
         "Soon the {person} knew of the {thing}. {wonder}",
     }},
    {"wonder",
     {
         "Then the {person} had to {dance}. {close}",
         "And the {furniture} was full of {gift}. {close}",
         "Now {he} could {skill} and {art}. {close}",
         "But {he} told only the {pet}. {close}",
         "Even {a odd} {stranger} heard of it. {close}",
         "So {number} {wares} came flying through the door. {close}",
     }},
    {"bargain",
     {
         "There {a odd} {stranger} offered {number} {wares} for it. {choice}",
         "The {person} wanted it for {number} {wares}. {choice}",
         "Nobody wanted it but {a odd} {stranger}. {choice}",
     }},
    {"choice",
     {
         "{He} shook {his} head, and the {thing} {did}. {close}",
         "{He} agreed, but the {thing} came back. {close}",
         "{He} sold it and bought {a colour} {pet}. {close}",
         "{He} was in doubt, but then the {thing} {did}. {wonder}",
     }},
};

const std::vector<Rule> kEndings{
    // With an animal in the tale.
    {"end",
     {
         "So {name} and the {animal} were friends.",
         "And they lived by the {place} for {number} years.",
         "The {animal} still tells of it in its {home}.",
         "That is how the {trade} found a friend.",
         "A {goods} is worth more than {treasure}.",
         "In {month} they both learned to {skill}.",
     }},
    // With a thing in the tale.
    {"close",
     {
         "So {name} lived by the {place} for {number} years.",
         "And the {trade} never {vice} again.",
         "The {thing} is in the {hall} to this day.",
         "If you pass the {place}, you may see {him} {dance}.",
         "A {goods} is worth more than {treasure}.",
         "In {month} the whole {crowd} {gladly}.",
     }},
};

}  // namespace

std::vector<Rule> tale_sentences() {
  std::vector<Rule> rules;
  for (const auto& part : {kBeginnings, kLost, kKindness, kMagic, kEndings})
    rules.insert(rules.end(), part.begin(), part.end());
  return rules;
}

}  // namespace normlab
