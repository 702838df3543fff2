# What src/host/build_facts.cpp says of the build and the compiler cannot know. The commit is asked for again whenever
# it changed; without git, or in a copy that is not the root of a repository, it is empty.
set(commit "")
find_program(GIT_PROGRAM git)
if(GIT_PROGRAM)
  execute_process(COMMAND ${GIT_PROGRAM} rev-parse --show-toplevel WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  get_filename_component(here ${PROJECT_SOURCE_DIR} REALPATH)
  if("${top}" STREQUAL "${here}")
    execute_process(COMMAND ${GIT_PROGRAM} rev-parse --short=12 HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    execute_process(COMMAND ${GIT_PROGRAM} rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(EXISTS "${log}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
    if(failed)
      set(commit "")  # a repository without a commit
    endif()
  endif()
endif()

string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
string(REPLACE ";" " " all_flags "${CMAKE_CXX_FLAGS};${CMAKE_CXX_FLAGS_${type}};${flags};${OpenMP_CXX_FLAGS}")
if(NORMLAB_SANITIZE)
  string(APPEND all_flags " -fsanitize=${NORMLAB_SANITIZE}")
endif()
string(REGEX REPLACE " -W[a-z-]+" "" all_flags "${all_flags}")
string(STRIP "${all_flags}" all_flags)
set_source_files_properties(
  ${PROJECT_SOURCE_DIR}/src/host/build_facts.cpp
  PROPERTIES COMPILE_DEFINITIONS
             "NORMLAB_VERSION=\"${PROJECT_VERSION}\";NORMLAB_COMMIT=\"${commit}\";NORMLAB_FLAGS=\"${all_flags}\";NORMLAB_OPENMP_VERSION=\"${OpenMP_CXX_VERSION}\"")
