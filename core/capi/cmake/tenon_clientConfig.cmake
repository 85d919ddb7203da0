# find_package(tenon_client): Tenon's C API for programs that run graphs (tenon_client.h).
#
#     find_package(tenon_client REQUIRED CONFIG)
#     target_link_libraries(my_program PRIVATE tenon::client)
#
# The library is that of TensorFlow's C API, whose package finds it: in lib/cmake of an archive, or in this folder of a clone of the
# repository, where TENON_LIB names the folder with the library that cargo built.
set(tenon_client_library "${CMAKE_CURRENT_LIST_DIR}/../tenon_tensorflow/tenon_tensorflowConfig.cmake")
if(NOT EXISTS "${tenon_client_library}")
  set(tenon_client_library "${CMAKE_CURRENT_LIST_DIR}/tenon_tensorflowConfig.cmake")
endif()
include("${tenon_client_library}")
if(NOT TARGET tenon::tensorflow)
  set(tenon_client_FOUND FALSE)
  set(tenon_client_NOT_FOUND_MESSAGE "${tenon_tensorflow_NOT_FOUND_MESSAGE}")
  return()
endif()

if(NOT TARGET tenon::client)
  add_library(tenon::client INTERFACE IMPORTED)
  set_target_properties(tenon::client PROPERTIES INTERFACE_LINK_LIBRARIES tenon::tensorflow)
endif()
