# What `cmake --install` puts where: programs to bin/, layers to lib/, headers to include/lockstep/,
# and the package that find_package(Lockstep) reads. Include after every folder has been added.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)

get_property(layers GLOBAL PROPERTY LOCKSTEP_LAYERS)
get_property(apps GLOBAL PROPERTY LOCKSTEP_APPS)
list(FILTER apps EXCLUDE REGEX "^bench_")  # of use in this tree alone
# All of it, and no test: what `make install` builds.
add_custom_target(lockstep_installed)
foreach(target ${layers} ${apps})
  add_dependencies(lockstep_installed ${target})
endforeach()
if(TARGET lockstep_mpi)
  add_dependencies(lockstep_installed lockstep_mpi)
endif()
install(TARGETS ${layers} EXPORT LockstepTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS ${apps} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The public headers alone; the others are the layers' own.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers
  FILES_MATCHING PATTERN "*.h")

install(EXPORT LockstepTargets NAMESPACE lockstep:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LockstepConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LockstepConfig.cmake
  ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake DESTINATION ${package_dir})
