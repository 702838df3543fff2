# What `cmake --install` puts where, for find_package(normlab) in another project. Headers of vector code, whose types
# depend on compiler options, stay inside.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/normlab)
set_target_properties(normlab_usage PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>;$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(normlab_lib PROPERTIES EXPORT_NAME normlab)
install(TARGETS normlab)
install(TARGETS normlab_lib normlab_usage normlab_flags EXPORT normlab)
install(EXPORT normlab NAMESPACE normlab:: FILE normlab-targets.cmake DESTINATION ${package})
install(DIRECTORY include/normlab DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        REGEX "kernels/(simd|activation|dropout)\\.h$" EXCLUDE)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/normlab)
if(OpenMP_CXX_FOUND)
  set(dependencies "include(CMakeFindDependencyMacro)\nfind_dependency(OpenMP COMPONENTS CXX)\n")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/normlab-config.cmake
     "${dependencies}include(\${CMAKE_CURRENT_LIST_DIR}/normlab-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/normlab-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/normlab-config.cmake ${PROJECT_BINARY_DIR}/normlab-config-version.cmake
        DESTINATION ${package})
