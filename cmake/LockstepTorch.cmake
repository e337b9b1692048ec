# libtorch from the distribution, or from -DCMAKE_PREFIX_PATH=. Its flags stay on its own target.
find_package(Torch REQUIRED)
set(LOCKSTEP_TORCH_INCLUDES "${TORCH_INCLUDE_DIRS}" CACHE INTERNAL "For tests that compile without CMake")
# Debian's TorchConfig sets an ABI flag and warnings through TORCH_CXX_FLAGS; the target carries the rest.
add_library(lockstep_torch INTERFACE)
add_library(lockstep::torch ALIAS lockstep_torch)
set_target_properties(lockstep_torch PROPERTIES EXPORT_NAME torch)
target_include_directories(lockstep_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(lockstep_torch INTERFACE ${TORCH_LIBRARIES})
set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS lockstep_torch)

# Whether libtorch's NCCL can be used: its CUDA library says that it has it; the header that its own need is NCCL's.
set(has_nccl OFF)
if(TARGET torch_cuda AND Torch_VERSION VERSION_GREATER_EQUAL 2.3)
  get_target_property(definitions torch_cuda INTERFACE_COMPILE_DEFINITIONS)
  find_path(LOCKSTEP_NCCL_HEADERS nccl.h HINTS ${CUDA_TOOLKIT_ROOT_DIR} ENV NCCL_HOME PATH_SUFFIXES include)
  if("USE_C10D_NCCL" IN_LIST definitions AND LOCKSTEP_NCCL_HEADERS)
    set(has_nccl ON)
  endif()
endif()
option(LOCKSTEP_NCCL "The back end c10d:nccl" ${has_nccl})
if(NOT LOCKSTEP_NCCL)
  message(STATUS "Back end c10d:nccl is not built, and its tests do not run: libtorch 2.3 or later with CUDA and NCCL, and nccl.h, are not both here")
endif()

# Two thirds of the time of whatever includes libtorch's headers go into reading them. With unity builds
# that is done once for all; in the debug preset each file has its own includes only.
define_property(TARGET PROPERTY LOCKSTEP_LINKS_TORCH)
set_target_properties(lockstep_torch PROPERTIES LOCKSTEP_LINKS_TORCH ON)
if(CMAKE_UNITY_BUILD)
  set(nothing ${PROJECT_BINARY_DIR}/torch_headers.cpp)
  file(CONFIGURE OUTPUT ${nothing} CONTENT "")
  add_library(lockstep_torch_headers OBJECT ${nothing})
  target_link_libraries(lockstep_torch_headers PRIVATE lockstep_torch)
  target_precompile_headers(lockstep_torch_headers PRIVATE
    <ATen/Functions.h> <ATen/Parallel.h> <torch/autograd.h> <torch/nn/functional/loss.h>
    <torch/nn/init.h> <torch/nn/module.h> <torch/nn/modules/activation.h>
    <torch/nn/modules/batchnorm.h> <torch/nn/modules/container/sequential.h>
    <torch/nn/modules/conv.h> <torch/nn/modules/linear.h> <torch/optim/adam.h>
    <torch/optim/sgd.h> <torch/types.h> <torch/utils.h>)
endif()

# Gives them to `target` where it links libtorch, itself or by a layer.
function(lockstep_read_torch_headers target)
  get_target_property(libraries ${target} LINK_LIBRARIES)
  foreach(library ${libraries})
    if(NOT TARGET ${library})
      continue()
    endif()
    get_target_property(links_torch ${library} LOCKSTEP_LINKS_TORCH)
    if(links_torch)
      set_target_properties(${target} PROPERTIES LOCKSTEP_LINKS_TORCH ON)
      if(TARGET lockstep_torch_headers)
        target_precompile_headers(${target} REUSE_FROM lockstep_torch_headers)
        target_compile_options(${target} PRIVATE -fPIC)  # as they were read; programs have -fPIE
      endif()
      return()
    endif()
  endforeach()
endfunction()
