# Destinations of `cmake --install`: programs in bin/, layers in lib/, headers in include/lockstep/,
# and the package that find_package(Lockstep) reads. Include after every folder has been added.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)

# Groups for find_package(): see LockstepConfig.cmake.in. `make install` builds all of them, and no
# test.
add_custom_target(lockstep_installed)
set(components_built core)
set(layers_of_groups)
foreach(group core torch launcher recipes)
  get_property(layers GLOBAL PROPERTY LOCKSTEP_LAYERS_${group})
  get_property(apps GLOBAL PROPERTY LOCKSTEP_APPS_${group})
  set(names)
  foreach(layer ${layers})
    get_target_property(name ${layer} EXPORT_NAME)
    list(APPEND names ${name})
  endforeach()
  string(APPEND layers_of_groups "set(_lockstep_layers_of_${group} \"${names}\")\n")
  if(NOT layers AND NOT apps)
    continue()
  endif()
  # Without the part RECIPES its group has the layers of DATA alone, which are found by their names.
  if(group STREQUAL "launcher" OR (group STREQUAL "recipes" AND LOCKSTEP_WITH_RECIPES))
    list(APPEND components_built ${group})
  endif()
  add_dependencies(lockstep_installed ${layers} ${apps})
  install(TARGETS ${layers} ${apps} EXPORT LockstepTargets-${group}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(EXPORT LockstepTargets-${group} NAMESPACE lockstep:: DESTINATION ${package_dir})
endforeach()
if(TARGET lockstep_mpi)
  add_dependencies(lockstep_installed lockstep_mpi)
endif()
set(parts_on)
foreach(part ${LOCKSTEP_PARTS})
  if(LOCKSTEP_WITH_${part})
    list(APPEND parts_on ${part})
  endif()
endforeach()
# scripts/test.sh checks whether a part, and so its tests, is missing.
set(LOCKSTEP_PARTS_ON "${parts_on}" CACHE INTERNAL "Parts that are built")
# Only the public headers, of the layers that are built; the others are internal.
get_property(public_headers GLOBAL PROPERTY LOCKSTEP_PUBLIC_HEADERS)
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep COMPONENT headers)
# Recipes: `lockstep train --config cls/...` finds them from any folder (recipe_file.cpp).
if(LOCKSTEP_WITH_RECIPES)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION share/lockstep
    FILES_MATCHING PATTERN "*.yaml")
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LockstepConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LockstepConfig.cmake
  ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake DESTINATION ${package_dir})
