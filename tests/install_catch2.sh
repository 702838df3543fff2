#!/bin/sh
# Sees to it that the tests find Catch2, version 2 or 3: as it is; else Debian's package; else its archive, loaded into
# the build directory (the argument), where tests/CMakeLists.txt finds it. Without a network: one message, exit code 2.
here=$(dirname "$0")
build=$1
installed() ( # in the build directory, since CMake leaves files where this runs
  mkdir -p "$build/find_catch2" && cd "$build/find_catch2" &&
    cmake --find-package -DNAME=Catch2 -DCOMPILER_ID=GNU -DLANGUAGE=CXX -DMODE=EXIST -DQUIET=ON >/dev/null 2>&1
)
installed && exit 0
[ -f "$build/catch2.tar.gz" ] && exit 0

log=$build/install_catch2.log
as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"
if command -v apt-get >/dev/null && $as_root true 2>"$log"; then
  echo "Catch2, which the tests need, is missing: installing Debian's package"
  apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=20 \
      -o DPkg::Lock::Timeout=60 "$@" >>"$log" 2>&1
  }
  apt install -y --no-install-recommends catch2 || { apt update && apt install -y --no-install-recommends catch2; }
  installed && exit 0
fi

echo "Catch2, which the tests need, is missing: loading it from github.com"
cmake -DARCHIVE="$build/catch2.tar.gz" -P "$here/catch2.cmake" >>"$log" 2>&1 && exit 0
echo "Catch2 is missing and could not be loaded (see $log). Connect to the network, or install it (Debian: apt-get" \
  "install catch2), and repeat 'make test'." >&2
exit 2
