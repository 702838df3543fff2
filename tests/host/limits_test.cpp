// Thread limits from made-up machines, subnormal numbers in every thread, the check of the processor, the build's
// facts.
#include "normlab/host/limits.h"

#include <unistd.h>

#include <filesystem>
#include <limits>

#include "catch.h"
#include "normlab/base/denormals.h"
#include "normlab/base/parallel.h"
#include "normlab/base/text.h"
#include "normlab/host/build_facts.h"
#include "normlab/host/files.h"
#include "normlab/host/processor_needs.h"

using namespace normlab;
namespace fs = std::filesystem;

namespace {

// A root directory with the files of one control group.
struct Root {
  fs::path path = fs::temp_directory_path() / ("normlab_machine_" + std::to_string(::getpid()));
  ~Root() { fs::remove_all(path); }
  Root& with(const std::string& file, const std::string& content) {
    fs::create_directories((path / file).parent_path());
    write_file((path / file).string(), content);
    return *this;
  }
  std::optional<double> cores() const { return cgroup_cores(path.string()); }
};

std::string message_for(InstructionBits built_for, InstructionBits supported) {
  char message[1024] = "";
  const std::size_t length = missing_instructions(built_for, supported, message, sizeof message);
  return std::string(message, length);
}

InstructionBits bit_of(std::string_view name) {
  for (int bit = 0; instruction_set_name(bit) != nullptr; ++bit)
    if (instruction_set_name(bit) == name) return InstructionBits{1} << bit;
  return 0;
}

}  // namespace

TEST_CASE("the least of the thread limits holds and is named", "[host]") {
  const auto limit = [](int affinity, std::optional<double> cores, std::optional<std::string> omp) {
    const ThreadLimit found = thread_limit({affinity, cores, omp, {}});
    return std::to_string(found.count) + ": " + found.source;
  };
  CHECK(limit(8, {}, {}) == "8: 8 cores of the affinity mask");
  CHECK(limit(1, 4.0, "4") == "1: 1 core of the affinity mask");
  CHECK(limit(8, 1.5, {}) == "2: the control group's quota of 1.5 cores");
  CHECK(limit(8, 0.1, "3") == "1: the control group's quota of 0.1 cores");
  CHECK(limit(8, 6.0, "3") == "3: OMP_NUM_THREADS=3");
  CHECK(limit(8, {}, " 4 ,3,2") == "4: OMP_NUM_THREADS= 4 ,3,2");
  CHECK(limit(2, {}, "64") == "2: 2 cores of the affinity mask");
  CHECK(thread_limit({8, 6.0, "5", 4}).source == "OMP_THREAD_LIMIT=4");
  CHECK(thread_limit({8, 6.0, "5", 4}).count == 4);
  CHECK(thread_limit({8, {}, {}, 2147483647}).count == 8);
  for (const char* nonsense : {"", "0", "-1", "many", "2x"}) CHECK(limit(8, {}, nonsense)[0] == '8');
}

TEST_CASE("the control group's quota is found in both versions and in groups above", "[host]") {
  Root root;
  SECTION("no control groups") { CHECK(!root.cores()); }
  SECTION("version 2, at the root of a container") {
    root.with("proc/self/cgroup", "0::/\n").with("sys/fs/cgroup/cpu.max", "150000 100000\n");
    CHECK(root.cores() == 1.5);
  }
  SECTION("version 2, no limit") {
    root.with("proc/self/cgroup", "0::/\n").with("sys/fs/cgroup/cpu.max", "max 100000\n");
    CHECK(!root.cores());
  }
  SECTION("version 2, the group above is narrower") {
    root.with("proc/self/cgroup", "0::/user.slice/job\n")
        .with("sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n")
        .with("sys/fs/cgroup/user.slice/job/cpu.max", "400000 100000\n");
    CHECK(root.cores() == 2.0);
  }
  SECTION("version 1, with the host's path in a container") {
    root.with("proc/self/cgroup", "5:memory:/docker/ab\n4:cpu,cpuacct:/docker/ab\n1:name=systemd:/x\n0::/system\n")
        .with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n")
        .with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK(root.cores() == 3.0);
  }
  SECTION("version 1, no limit") {
    root.with("proc/self/cgroup", "1:cpu:/\n")
        .with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
        .with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CHECK(!root.cores());
  }
}

TEST_CASE("this process may use at least one thread, and says why", "[host]") {
  const ThreadLimit limit = allowed_threads();
  CHECK(limit.count >= 1);
  CHECK(!limit.source.empty());
}

#if defined(__x86_64__) || defined(__aarch64__)
namespace {

// Of each thread of the team: 1 or 0.
std::vector<char> flushes_denormals() {
  std::vector<char> flags(static_cast<std::size_t>(measured_threads()));
  in_every_thread([&](int thread) { flags[static_cast<std::size_t>(thread)] = denormals_flushed(); });
  return flags;
}

}  // namespace

TEST_CASE("a subnormal number is written in full by a thread that counts it as 0", "[host]") {
  flush_denormals(true);
  const std::string smallest = number(4.9406564584124654e-324), larger = number(1e-320), zero = number(0.0);
  const std::vector<char> flags = flushes_denormals();
  flush_denormals(false);
  CHECK(smallest == "5e-324");  // 2^-1074
  CHECK(larger == "1e-320");
  CHECK(zero == "0");
  CHECK(flags == std::vector<char>(flags.size(), 1));
}

TEST_CASE("subnormal numbers are flushed in every thread of the team, and no longer when told so", "[host]") {
  const int before = threads();
  const int team = GENERATE(1, 2, 5);
  CAPTURE(team);
  set_threads(team);
  // Half of the least normal number, computed at run time in each thread.
  const auto halves = [] {
    std::vector<float> values(static_cast<std::size_t>(threads()), -1.0f);
    in_every_thread([&](int thread) {
      volatile float least = std::numeric_limits<float>::min();
      values[static_cast<std::size_t>(thread)] = least * 0.5f;
    });
    return values;
  };
  const auto size = static_cast<std::size_t>(measured_threads());
  flush_denormals(true);
  const std::vector<char> on = flushes_denormals();
  const std::vector<float> flushed = halves();
  flush_denormals(false);
  const std::vector<char> off = flushes_denormals();
  const std::vector<float> kept = halves();
  set_threads(before);
  CHECK(on == std::vector<char>(size, 1));
  CHECK(off == std::vector<char>(size, 0));
  CHECK(flushed == std::vector<float>(size, 0.0f));
  CHECK(kept == std::vector<float>(size, 5.877471754111438e-39f));  // 2^-127
}
#endif

TEST_CASE("a processor that lacks something is told what, and what to do", "[host]") {
  CHECK(message_for(0, 0).empty());
  CHECK(message_for(5, 7).empty());
  CHECK(message_for(kBuiltFor, supported_instructions()).empty());
#if defined(__x86_64__)
  const InstructionBits avx512f = bit_of("avx512f"), avx2 = bit_of("avx2"), fma = bit_of("fma");
  REQUIRE(avx512f * avx2 * fma != 0);
  CHECK(message_for(avx2 | fma | avx512f, avx2 | fma) ==
        "normlab: this program was built for a processor with avx2 fma avx512f, but this one has no avx512f. "
        "Build it again on this machine, or for every machine by\n"
        "  cmake -S . -B build -DNORMLAB_NATIVE=OFF && cmake --build build\n");
#ifdef __AVX2__
  CHECK((kBuiltFor & avx2) != 0);
#else
  CHECK((kBuiltFor & avx2) == 0);
#endif
  char small[20];
  CHECK(missing_instructions(avx2, 0, small, sizeof small) == 19);
  CHECK(std::string(small) == "normlab: this progr");
#endif
}

TEST_CASE("the build's facts are there", "[host]") {
  const BuildFacts& facts = build_facts();
  CHECK(facts.version.find('.') != std::string_view::npos);
  CHECK(!facts.compiler.empty());
  CHECK(facts.flags.find("-W") == std::string_view::npos);
  CHECK(facts.flags.find("-fno-math-errno") != std::string_view::npos);
#if defined(__x86_64__)
  CHECK(instruction_set().rfind("x86-64", 0) == 0);
#endif
#ifdef __AVX2__
  CHECK(instruction_set().find(" avx2") != std::string::npos);
#endif
  INFO(facts.flags);
  CHECK(facts.openmp.empty() == (measured_threads() == 1 && allowed_threads().source == "a build without OpenMP"));
}

TEST_CASE("the least of the memory of the machine and of all control groups above counts", "[host]") {
  const double machine = memory_limit("/nowhere").value().bytes;  // no control groups there
  CHECK(machine == static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  Root root;
  const auto found = [&] { return memory_limit(root.path.string()).value(); };
  SECTION("version 2, a number, and the group above is narrower") {
    root.with("proc/self/cgroup", "0::/slice/job\n")
        .with("sys/fs/cgroup/slice/memory.max", "67108864\n")
        .with("sys/fs/cgroup/slice/job/memory.max", "77108864\n");
    CHECK(found().bytes == 67108864.0);
    CHECK(found().source == "the control group's limit");
  }
  SECTION("version 2, no limit") {
    root.with("proc/self/cgroup", "0::/job\n").with("sys/fs/cgroup/job/memory.max", "max\n");
    CHECK(found().bytes == machine);
    CHECK(found().source == "the machine's memory");
  }
  SECTION("version 1, and its number for no limit") {
    root.with("proc/self/cgroup", "5:memory:/docker/ab\n4:cpu,cpuacct:/x\n")
        .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "50000000\n")
        .with("sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(found().bytes == 50000000.0);
  }
  SECTION("version 1, no limit") {
    root.with("proc/self/cgroup", "5:memory:/\n")
        .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(found().bytes == machine);
  }
  SECTION("without /proc, the group at the root: a container's own") {
    root.with("sys/fs/cgroup/memory.max", "60000000\n").with("sys/fs/cgroup/cpu.max", "150000 100000\n");
    CHECK(found().bytes == 60000000.0);
    CHECK(root.cores() == 1.5);
  }
}
