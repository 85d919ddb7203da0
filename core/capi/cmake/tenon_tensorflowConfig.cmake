# find_package(tenon_tensorflow): TensorFlow's C API over Tenon.
#
#     find_package(tenon_tensorflow REQUIRED CONFIG)
#     target_link_libraries(my_program PRIVATE tenon::tensorflow)
#
# The file is in lib/cmake/tenon_tensorflow of an archive; the library and the header are found relative to it. In a clone of the
# repository, TENON_LIB names the folder with the library that cargo built.
get_filename_component(tenon_tensorflow_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(tenon_tensorflow_include "${tenon_tensorflow_root}/include")
set(tenon_tensorflow_lib "${tenon_tensorflow_root}/lib")
if(NOT EXISTS "${tenon_tensorflow_include}/tenon_tensorflow.h")
  # A clone of the repository.
  get_filename_component(tenon_tensorflow_include "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
  set(tenon_tensorflow_lib "${TENON_LIB}")
  if(NOT tenon_tensorflow_lib)
    set(tenon_tensorflow_lib "$ENV{TENON_LIB}")
  endif()
endif()
set(tenon_tensorflow_file
  "${tenon_tensorflow_lib}/${CMAKE_SHARED_LIBRARY_PREFIX}tenon_tensorflow${CMAKE_SHARED_LIBRARY_SUFFIX}")
if(NOT EXISTS "${tenon_tensorflow_file}")
  set(tenon_tensorflow_FOUND FALSE)
  set(tenon_tensorflow_NOT_FOUND_MESSAGE
    "${tenon_tensorflow_file} is not there: build it by `cargo build --release -p tenon-capi`, and name its folder by TENON_LIB")
  return()
endif()

if(NOT TARGET tenon::tensorflow)
  add_library(tenon::tensorflow SHARED IMPORTED)
  set_target_properties(tenon::tensorflow PROPERTIES
    IMPORTED_LOCATION "${tenon_tensorflow_file}"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${tenon_tensorflow_include}")
endif()
