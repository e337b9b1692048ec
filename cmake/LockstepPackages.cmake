# Lockstep's needs of other projects: first those of every build, then a macro
# lockstep_find_for_NAME for each part, which appends missing packages to `missing`. They are
# macros, since find_package() sets variables of the calling folder.

# `debian` is the package of Debian 12 that contains it.
macro(lockstep_find package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    list(APPEND missing "${package} (Debian: ${debian})")
  endif()
endmacro()

# Libraries without a CMake configuration are linked by name; their header shows whether they are
# installed. Users of the installed package then need no configuration of theirs either.
macro(lockstep_find_header variable header debian)
  find_path(${variable} ${header} ${ARGN})
  if(NOT ${variable})
    list(APPEND missing "${header} (Debian: ${debian})")
  endif()
endmacro()

macro(lockstep_find_module prefix modules debian)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(${prefix} QUIET ${modules})
  endif()
  if(NOT ${prefix}_FOUND)
    list(APPEND missing "${modules} for pkg-config (Debian: ${debian})")
  endif()
endmacro()

# The core.
set(missing)
find_package(Threads REQUIRED)
lockstep_find(fmt libfmt-dev)
lockstep_find(nlohmann_json nlohmann-json3-dev)
lockstep_find(OpenSSL libssl-dev)
lockstep_find_header(LOCKSTEP_LIBDW_INCLUDE elfutils/libdwfl.h libdw-dev)
if(missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "Lockstep needs ${missing}")
endif()

macro(lockstep_find_for_TORCH)
  include(LockstepFindTorch)
  lockstep_find_torch()
  if(Torch_FOUND)
    include(LockstepTorch)
  endif()
endmacro()

# Only curl's header: store/etcd/http.cpp loads the library when it is needed.
macro(lockstep_find_for_ETCD)
  lockstep_find_header(LOCKSTEP_CURL_INCLUDE curl/curl.h libcurl4-openssl-dev)
endmacro()

# If there are several MPIs, -DMPI_CXX_COMPILER=mpicxx.mpich -DMPIEXEC_EXECUTABLE=mpiexec.mpich
# chooses one other than the default.
macro(lockstep_find_for_MPI)
  if(LOCKSTEP_SANITIZE)
    # MPI libraries keep memory until the process ends, which sanitizers report as leaks.
    list(APPEND missing "a build without sanitizers")
  else()
    find_package(MPI QUIET COMPONENTS CXX)
    if(NOT MPI_CXX_FOUND)
      list(APPEND missing "MPI (Debian: libopenmpi-dev)")
    endif()
  endif()
endmacro()

# libtorch has the back end, but not Gloo's headers.
macro(lockstep_find_for_GLOO)
  # Headers must be of the Gloo that libtorch has inside; Debian's has Debian's.
  if(LOCKSTEP_TORCH)
    find_path(LOCKSTEP_GLOO_HEADERS gloo/transport/device.h PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH)
    if(NOT LOCKSTEP_GLOO_HEADERS)
      list(APPEND missing "Gloo's headers, which libtorch ${Torch_VERSION} does not bring")
    endif()
  else()
    lockstep_find_header(LOCKSTEP_GLOO_HEADERS gloo/transport/device.h libgloo-dev)
  endif()
endmacro()

# The definitions of libtorch's CUDA library show whether it has the back end, whose header needs
# NCCL's.
macro(lockstep_find_for_NCCL)
  set(definitions)
  if(TARGET torch_cuda AND Torch_VERSION VERSION_GREATER_EQUAL 2.3)
    get_target_property(definitions torch_cuda INTERFACE_COMPILE_DEFINITIONS)
  endif()
  if("USE_C10D_NCCL" IN_LIST definitions)
    lockstep_find_header(LOCKSTEP_NCCL_HEADERS nccl.h libnccl-dev
      HINTS ${lockstep_torch_prefix}/../nvidia/nccl # beside a package torch of PyPI
        ${CUDA_TOOLKIT_ROOT_DIR} ENV NCCL_HOME PATH_SUFFIXES include)
    # Its header includes those of cuBLAS and its kin, which a small toolkit lacks and PyPI's
    # packages beside torch bring.
    file(GLOB LOCKSTEP_CUDA_HEADERS ${lockstep_torch_prefix}/../nvidia/*/include)
  else()
    list(APPEND missing "libtorch 2.3 or later with CUDA and NCCL")
  endif()
endmacro()

macro(lockstep_find_for_DATA)
  lockstep_find(yaml-cpp libyaml-cpp-dev)
  lockstep_find(CURL libcurl4-openssl-dev)
  lockstep_find(LibArchive libarchive-dev)
  # Debian's OpenCV has no CMake configuration unless all of it is installed: three libraries by
  # name.
  lockstep_find_header(LOCKSTEP_OPENCV_INCLUDE opencv2/core.hpp "libopencv-core-dev"
    PATH_SUFFIXES opencv4)
  lockstep_find_header(LOCKSTEP_OPENCV_CODECS opencv2/imgcodecs.hpp "libopencv-imgcodecs-dev"
    PATH_SUFFIXES opencv4)
  lockstep_find_header(LOCKSTEP_OPENCV_IMGPROC opencv2/imgproc.hpp "libopencv-imgproc-dev"
    PATH_SUFFIXES opencv4)
  lockstep_find_header(LOCKSTEP_JPEG_INCLUDE jpeglib.h libjpeg-dev)
  lockstep_find_header(LOCKSTEP_ZLIB_INCLUDE zlib.h zlib1g-dev)
  lockstep_find_header(LOCKSTEP_CLIPPER_INCLUDE polyclipping/clipper.hpp libpolyclipping-dev)
  lockstep_find_header(LOCKSTEP_GEOS_INCLUDE geos_c.h libgeos-dev)
  lockstep_find_header(LOCKSTEP_LMDB_INCLUDE lmdb.h liblmdb-dev)
  lockstep_find_header(LOCKSTEP_MATIO_INCLUDE matio.h libmatio-dev)
  lockstep_find_header(LOCKSTEP_FREETYPE_INCLUDE ft2build.h libfreetype-dev PATH_SUFFIXES freetype2)
  lockstep_find_header(LOCKSTEP_FONTCONFIG_INCLUDE fontconfig/fontconfig.h libfontconfig-dev)
  lockstep_find_module(LOCKSTEP_PANGO "pangocairo;fontconfig" libpango1.0-dev)
  lockstep_find_module(LOCKSTEP_GLIB glib-2.0 libglib2.0-dev)
endmacro()
