# Catch2 from its own archive, where no package of it is installed. As a script (cmake -DARCHIVE=FILE -P) it loads the
# archive to FILE and fails when it cannot.
set(catch2_url https://github.com/catchorg/Catch2/archive/05e10dfccc28c7f973727c54f850237d07d5e10f.tar.gz)  # 3.5.2
set(catch2_sha256 e7bbe2a99e111dfc9eb931f5e95b11b02f18f64c4f5b3aff6fdbd118fe440107)

if(CMAKE_SCRIPT_MODE_FILE)
  file(DOWNLOAD ${catch2_url} ${ARCHIVE} STATUS status INACTIVITY_TIMEOUT 20)
  file(SHA256 ${ARCHIVE} found)
  if(NOT found STREQUAL catch2_sha256)
    file(REMOVE ${ARCHIVE})
    message(FATAL_ERROR "${status}")
  endif()
else()
  include(FetchContent)
  if(EXISTS ${PROJECT_BINARY_DIR}/catch2.tar.gz)
    set(catch2_url ${PROJECT_BINARY_DIR}/catch2.tar.gz)
  endif()
  FetchContent_Declare(Catch2 URL ${catch2_url} URL_HASH SHA256=${catch2_sha256})
  FetchContent_MakeAvailable(Catch2)
endif()
