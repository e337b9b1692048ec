# libtorch from the distribution, or from -DCMAKE_PREFIX_PATH=, found by LockstepPackages.cmake. Its
# flags stay on its own target.
set(LOCKSTEP_TORCH_INCLUDES "${TORCH_INCLUDE_DIRS}" CACHE INTERNAL "For tests that compile without CMake")
# Debian's TorchConfig sets an ABI flag and warnings in TORCH_CXX_FLAGS; the target has the rest.
add_library(lockstep_torch INTERFACE)
add_library(lockstep::torch ALIAS lockstep_torch)
set_target_properties(lockstep_torch PROPERTIES EXPORT_NAME torch)
# The installed package takes them from its own search: a package torch may lie below this folder,
# and CMake installs no target that refers to the sources.
target_include_directories(lockstep_torch SYSTEM INTERFACE "$<BUILD_INTERFACE:${TORCH_INCLUDE_DIRS}>")
message(STATUS "libtorch ${Torch_VERSION} of ${TORCH_INSTALL_PREFIX}")
# The Python that has this libtorch as its package torch, for tests that compare bits with PyTorch.
set(python /usr/bin/python3)
if(TORCH_INSTALL_PREFIX MATCHES "^(.*)/lib/python[0-9.]+/site-packages/torch$")
  set(python ${CMAKE_MATCH_1}/bin/python)
endif()
set(LOCKSTEP_TEST_PYTHON ${python} CACHE INTERNAL "For tests that ask PyTorch")
# A package torch brings headers of its own fmt, which is another version than the one that is linked.
foreach(folder ${TORCH_INCLUDE_DIRS})
  if(EXISTS ${folder}/fmt AND NOT folder MATCHES "^/usr/include")
    get_target_property(fmt_folder fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/fmt_of_system)
    file(CREATE_LINK ${fmt_folder}/fmt ${PROJECT_BINARY_DIR}/fmt_of_system/fmt SYMBOLIC)
    target_include_directories(lockstep_torch SYSTEM BEFORE INTERFACE
      $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/fmt_of_system>)
  endif()
endforeach()
# First of all libraries. PyPI's libtorch exports parts of std::filesystem, of another libstdc++: behind
# it, a program's remove_all() would be libtorch 2.11's, which calls a null pointer.
target_link_options(lockstep_torch INTERFACE "SHELL:-Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state")
target_link_libraries(lockstep_torch INTERFACE ${TORCH_LIBRARIES})
set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS_torch lockstep_torch)

# Reading libtorch's headers takes two thirds of the time of a source that includes them. With unity
# builds they are read once for all; in the debug preset each file has its own includes only.
define_property(TARGET PROPERTY LOCKSTEP_LINKS_TORCH)
define_property(TARGET PROPERTY LOCKSTEP_IS_TEST)
set_target_properties(lockstep_torch PROPERTIES LOCKSTEP_LINKS_TORCH ON)
# `target` has them. The tests have some of their own (LockstepBuild.cmake).
function(lockstep_precompile_torch_headers target)
  set(nothing ${PROJECT_BINARY_DIR}/${target}.cpp)
  file(CONFIGURE OUTPUT ${nothing} CONTENT "")
  add_library(${target} OBJECT ${nothing})
  target_link_libraries(${target} PRIVATE lockstep_torch)
  target_precompile_headers(${target} PRIVATE
    <ATen/Functions.h> <ATen/Parallel.h> <torch/autograd.h> <torch/nn/functional/loss.h>
    <torch/nn/init.h> <torch/nn/module.h> <torch/nn/modules/activation.h>
    <torch/nn/modules/batchnorm.h> <torch/nn/modules/container/sequential.h>
    <torch/nn/modules/conv.h> <torch/nn/modules/linear.h> <torch/optim/adam.h>
    <torch/optim/sgd.h> <torch/types.h> <torch/utils.h> ${ARGN})
endfunction()
if(CMAKE_UNITY_BUILD)
  lockstep_precompile_torch_headers(lockstep_torch_headers)
endif()

# Notes at `target` that it links libtorch if one of these libraries does.
function(lockstep_note_torch target)
  foreach(library ${ARGN})
    if(NOT TARGET ${library})
      continue()
    endif()
    get_target_property(links_torch ${library} LOCKSTEP_LINKS_TORCH)
    if(links_torch)
      set_target_properties(${target} PROPERTIES LOCKSTEP_LINKS_TORCH ON)
      return()
    endif()
  endforeach()
endfunction()

# Adds the headers to `target` if it links libtorch, directly or through a layer.
function(lockstep_read_torch_headers target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  lockstep_note_torch(${target} ${libraries})
  get_target_property(links_torch ${target} LOCKSTEP_LINKS_TORCH)
  set(headers lockstep_torch_headers)
  get_target_property(is_test ${target} LOCKSTEP_IS_TEST)
  if(is_test)
    set(headers lockstep_torch_test_headers)
  endif()
  if(links_torch AND TARGET ${headers})
    target_precompile_headers(${target} REUSE_FROM ${headers})
    target_compile_options(${target} PRIVATE -fPIC)  # as the headers; programs have -fPIE
  endif()
endfunction()
