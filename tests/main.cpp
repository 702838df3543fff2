// The test runner. Catch2 version 2 makes its main function here; version 3 brings its own with Catch2WithMain,
// so one is written out for it.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
