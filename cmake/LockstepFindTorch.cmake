# Which libtorch: -DLOCKSTEP_TORCH=
#   a folder      a libtorch archive, the package torch of a Python, or a virtual environment with it
#   a Python      its package torch
#   a version     the one that `TORCH=VERSION scripts/setup.sh run` has put below build/torch
# Empty: Debian's, or what CMAKE_PREFIX_PATH has.
set(LOCKSTEP_TORCH "" CACHE STRING "libtorch: a folder, a Python or a version; empty: the system's")

# Finds Torch, of the choice. TorchConfig.cmake searches for Caffe2 and for its own libraries in the
# system's folders first, so the choice stands at the front of CMAKE_PREFIX_PATH meanwhile.
macro(lockstep_find_torch)
  lockstep_forget_other_torch()
  set(prefix_path_before ${CMAKE_PREFIX_PATH})
  set(lockstep_torch_prefix)
  if(LOCKSTEP_TORCH)
    lockstep_choose_torch(lockstep_torch_prefix)
    list(PREPEND CMAKE_PREFIX_PATH ${lockstep_torch_prefix})
    if(EXISTS ${lockstep_torch_prefix}/lib/libtorch_cuda.so)
      lockstep_find_cuda_toolkit()
      # A small toolkit lacks NVRTC, which libtorch's targets link, and which is beside the package.
      find_library(CUDA_nvrtc_LIBRARY nvrtc PATHS ${CUDA_TOOLKIT_ROOT_DIR}/lib64
        ${CUDA_TOOLKIT_ROOT_DIR}/lib ${CUDA_TOOLKIT_ROOT_DIR}/targets/x86_64-linux/lib NO_DEFAULT_PATH)
      file(GLOB nvrtc ${lockstep_torch_prefix}/../nvidia/*/lib/libnvrtc.so.*)
      if(nvrtc AND NOT CUDA_nvrtc_LIBRARY)
        list(GET nvrtc 0 CUDA_nvrtc_LIBRARY)
        set(CUDA_nvrtc_LIBRARY ${CUDA_nvrtc_LIBRARY} CACHE FILEPATH "NVRTC, for a libtorch with CUDA" FORCE)
      endif()
      # No source here is CUDA's. Unset, libtorch's configuration compiles a program to find GPUs.
      if(NOT DEFINED TORCH_CUDA_ARCH_LIST AND NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST})
        set(TORCH_CUDA_ARCH_LIST 9.0)
      endif()
    endif()
  endif()
  lockstep_find(Torch "libtorch-dev, or -DLOCKSTEP_TORCH=FOLDER")
  set(CMAKE_PREFIX_PATH ${prefix_path_before})
  if(Torch_FOUND)
    lockstep_check_torch()
  endif()
endmacro()

# What was found of another choice in the same build folder.
function(lockstep_forget_other_torch)
  # Not at the first configuration: then these are what the user has given.
  if(DEFINED LOCKSTEP_TORCH_BEFORE AND NOT "${LOCKSTEP_TORCH}" STREQUAL "${LOCKSTEP_TORCH_BEFORE}")
    foreach(found Torch_DIR Caffe2_DIR TORCH_LIBRARY c10_LIBRARY kineto_LIBRARY C10_CUDA_LIBRARY
                  LOCKSTEP_GLOO_HEADERS LOCKSTEP_NCCL_HEADERS CUDA_TOOLKIT_ROOT_DIR CUDA_nvrtc_LIBRARY)
      unset(${found} CACHE)
    endforeach()
  endif()
  set(LOCKSTEP_TORCH_BEFORE "${LOCKSTEP_TORCH}" CACHE INTERNAL "The choice of the configuration before")
endfunction()

# The folder that has share/cmake/Torch, of the choice.
function(lockstep_choose_torch result)
  set(choice ${LOCKSTEP_TORCH})
  if(choice MATCHES "^[0-9]+\\.[0-9]+(\\.[0-9]+)?$")
    set(folder ${PROJECT_SOURCE_DIR}/build/torch/${choice})
    if(NOT EXISTS ${folder})
      message(FATAL_ERROR "LOCKSTEP_TORCH: ${folder} is not there: TORCH=${choice} scripts/setup.sh run makes it")
    endif()
  else()
    if(choice MATCHES /)
      cmake_path(ABSOLUTE_PATH choice BASE_DIRECTORY ${PROJECT_SOURCE_DIR} NORMALIZE)
    endif()
    if(IS_DIRECTORY "${choice}")
      set(folder ${choice})
    else()
      find_program(python ${choice} NO_CACHE)
      if(NOT python)
        message(FATAL_ERROR "LOCKSTEP_TORCH is '${choice}': a folder with libtorch, a Python with the package torch, or a version such as 2.13.0")
      endif()
      lockstep_torch_of_python(${python} folder)
    endif()
  endif()
  file(GLOB configs
    ${folder}/share/cmake/Torch/TorchConfig.cmake ${folder}/torch/share/cmake/Torch/TorchConfig.cmake
    ${folder}/lib/python*/site-packages/torch/share/cmake/Torch/TorchConfig.cmake)
  if(NOT configs)
    message(FATAL_ERROR "LOCKSTEP_TORCH: ${folder} has no share/cmake/Torch/TorchConfig.cmake: neither a libtorch archive nor a package torch of PyPI")
  endif()
  list(GET configs 0 config)
  string(REPLACE /share/cmake/Torch/TorchConfig.cmake "" prefix ${config})
  set(${result} ${prefix} PARENT_SCOPE)
endfunction()

# The folder of a Python's package torch; finding it loads nothing of it.
function(lockstep_torch_of_python python result)
  execute_process(COMMAND ${python} -c
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder ERROR_VARIABLE error RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(code OR NOT folder)
    message(FATAL_ERROR "LOCKSTEP_TORCH: ${python} has no package torch: ${python} -m pip install torch")
  endif()
  set(${result} ${folder} PARENT_SCOPE)
endfunction()

# libtorch's own configuration takes the folder above nvcc for the toolkit, which is wrong where nvcc
# in PATH is a script. Its own search serves where this finds nothing. That of CMake for the compiler
# leaves out PATH, because packages are not searched there.
function(lockstep_find_cuda_toolkit)
  set(folders ${CUDA_TOOLKIT_ROOT_DIR} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
  find_program(nvcc nvcc HINTS ${CUDA_TOOLKIT_ROOT_DIR} ENV PATH ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
    PATH_SUFFIXES bin NO_CACHE)
  if(nvcc)
    # It names its own folder: "#$ _HERE_=/usr/local/cuda-13.0/bin".
    execute_process(COMMAND ${nvcc} --dryrun -E x.cu ERROR_VARIABLE told OUTPUT_QUIET)
    if(told MATCHES "_HERE_=([^\n]*)/bin")
      list(APPEND folders ${CMAKE_MATCH_1})
    endif()
  endif()
  if(nvcc AND "$ENV{CUDACXX}" STREQUAL "")
    set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "The compiler that libtorch's configuration asks for")
  endif()
  foreach(folder ${folders} /usr/local/cuda)
    if(EXISTS ${folder}/include/cuda_runtime.h)
      set(CUDA_TOOLKIT_ROOT_DIR ${folder} CACHE PATH "The CUDA toolkit, for a libtorch with CUDA")
      break()
    endif()
  endforeach()
endfunction()

# An error where Lockstep cannot be built with what was found.
function(lockstep_check_torch)
  if(Torch_VERSION VERSION_LESS 1.13 OR Torch_VERSION VERSION_GREATER_EQUAL 3)
    message(FATAL_ERROR "libtorch ${Torch_VERSION} of ${Torch_DIR}: Lockstep takes 1.13 to 2.x; -DLOCKSTEP_TORCH= names another")
  endif()
  if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
    message(FATAL_ERROR "libtorch ${Torch_VERSION} of ${Torch_DIR} has the C++ ABI of before GCC 5, and the system's libraries the present one: take a package torch of 2.6 or later, or the archive that is called cxx11-abi")
  endif()
  foreach(library TORCH_LIBRARY c10_LIBRARY Caffe2_DIR)
    if(LOCKSTEP_TORCH AND ${library})
      cmake_path(IS_PREFIX lockstep_torch_prefix "${${library}}" NORMALIZE is_of_choice)
      if(NOT is_of_choice)
        message(FATAL_ERROR "libtorch ${Torch_VERSION} of ${lockstep_torch_prefix}: ${library} is ${${library}}, which is another's")
      endif()
    endif()
  endforeach()
endfunction()
