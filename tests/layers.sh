#!/bin/sh
# Fails when an include goes against the layers, or files include one another in a circle. A room may include itself and
# those that its row names; a header and the source of its name count as one file. An argument is another source tree.
cd "${1:-$(dirname "$0")/..}" || exit 2
# shellcheck disable=SC2016  # the dollars are awk's
find include/normlab src -name '*.h' -o -name '*.cpp' | LC_ALL=C sort | xargs awk '
BEGIN {
  may["base"]           = ""
  may["host"]           = "base"
  may["formats"]        = "base host"
  may["config"]         = "base host formats"
  may["kernels"]        = "base"
  may["tensor"]         = "base kernels"
  may["ops"]            = "base kernels tensor"
  may["nn"]             = "base formats config kernels tensor ops"
  may["optim"]          = "base config kernels tensor"
  may["data/tokenizer"] = "base host formats"
  may["data/corpora"]   = "base host"
  may["data"]           = "base host formats config nn data/tokenizer data/corpora"
  may["train"]          = "base host formats config kernels tensor ops nn optim data data/tokenizer data/corpora"
  may["interop"]        = may["train"] " train"
  may["run"]            = may["interop"] " interop"
  may["chart"]          = "base"
  may["lab/inspect"]    = may["run"] " run chart"
  may["lab/curvature"]  = may["lab/inspect"]
  may["lab/check"]      = may["lab/inspect"] " lab/curvature"
  may["lab"]            = may["lab/inspect"]
  may["report"]         = may["lab/inspect"] " lab/inspect"
  may["bench"]          = may["lab/inspect"]
  may["claims"]         = may["report"] " report bench"
  may["cli"]            = may["claims"] " claims lab lab/check lab/curvature"
}
function room_of(path) {
  sub(/^(src|include\/normlab|normlab)\//, "", path)
  sub(/\/[^\/]*$/, "", path)
  return path
}
function unit_of(path) {
  sub(/^(src|include\/normlab|normlab)\//, "", path)
  sub(/\.[a-z]*$/, "", path)
  return path
}
function bad(why) {
  printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why
  failures++
}
FNR == 1 {
  room = room_of(FILENAME)
  if (!(room in may)) bad("no room is called " room "; the table is in tests/layers.sh")
}
/^[ \t]*#[ \t]*include/ {
  target = $0
  sub(/^[^"<]*["<]/, "", target)
  sub(/[">].*/, "", target)
  if (target ~ /^normlab\//) {
    other = room_of(target)
    if (other != room && index(" " may[room] " ", " " other " ") == 0)
      bad(room " may include " (may[room] == "" ? "no other room" : may[room]) ", not " other)
    if (target == "normlab/kernels/simd.h" && room != "kernels") bad("vector code stays in kernels")
  } else if ($0 ~ /"/ && target ~ /\//) {
    bad("a header of another room is included as \"normlab/ROOM/NAME.h\"")
  } else if (target == "omp.h" && FILENAME != "include/normlab/base/parallel.h") {
    bad("threads are used through normlab/base/parallel.h")
  } else if (target ~ /intrin\.h$/) {
    bad("vector code is written with the extensions of normlab/kernels/simd.h")
  }
  if ($0 ~ /"/) {
    from = unit_of(FILENAME)
    to = target ~ /^normlab\// ? unit_of(target) : room "/" unit_of(target)
    if (from != to && !((from, to) in edge)) {
      edge[from, to] = FILENAME
      count++
      tail[count] = from
      head[count] = to
    }
  }
}
END {
  # What includes nothing that is left, or is included by nothing that is left, lies on no circle.
  do {
    gone = 0
    split("", includes)
    split("", included)
    for (i = 1; i <= count; i++) if (i in tail) {
      includes[tail[i]] = 1
      included[head[i]] = 1
    }
    for (i = 1; i <= count; i++)
      if (i in tail && (!(head[i] in includes) || !(tail[i] in included))) {
        delete tail[i]
        gone++
      }
  } while (gone > 0)
  for (i = 1; i <= count; i++) if (i in tail) {
    printf "%s: includes %s on a circle of files that include one another\n", edge[tail[i], head[i]], head[i]
    failures++
  }
  exit failures > 0
}'
