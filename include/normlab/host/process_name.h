// This process among all that write to a disk, which may be of several hosts.
#pragma once

#include <string>
#include <string_view>

namespace normlab {

std::string host_name();

// "5f3a9c01-4711": the host, as a hash of its name and of what numbers its processes, and the process id.
std::string process_name();

// Whether the process of this name is known to be no more. False for one of another host, and for what is no name.
bool has_ended(std::string_view process_name);

}  // namespace normlab
