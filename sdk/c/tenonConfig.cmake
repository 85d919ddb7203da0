# find_package(tenon): the headers of Tenon's SDK for C and C++, and a function that makes a plugin of sources.
#
#     find_package(tenon REQUIRED CONFIG PATHS path/to/include)
#     tenon_add_plugin(my_op plugin.cpp)
#
# tenon::headers is the target with the headers. tenon_add_plugin(NAME SOURCE...) makes the library libNAME.so, which
# exports its door alone, with C11 or C++17 at least; it is an ordinary target, for target_link_libraries and the like.
# Where the command `tenon` is found (or TENON_COMMAND names it), ctest checks the plugin, and the target NAME-bench
# times it.
find_package(Threads REQUIRED)

set(tenon_INCLUDE_DIRS "${CMAKE_CURRENT_LIST_DIR}")
if(NOT EXISTS "${CMAKE_CURRENT_LIST_DIR}/tenon.h")
  # A clone of the repository.
  list(APPEND tenon_INCLUDE_DIRS "${CMAKE_CURRENT_LIST_DIR}/../../core/abi/include")
endif()
set(tenon_EXPORTS "${CMAKE_CURRENT_LIST_DIR}/tenon.map")

if(NOT TARGET tenon::headers)
  add_library(tenon::headers INTERFACE IMPORTED)
  set_target_properties(tenon::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${tenon_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()

find_program(TENON_COMMAND tenon DOC "The command that checks and times plugins")

function(tenon_add_plugin name)
  if(NOT ARGN)
    message(FATAL_ERROR "tenon_add_plugin(${name}): expected sources after the name")
  endif()
  string(REPLACE "-" "_" output "${name}")
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES
    PREFIX "lib"
    OUTPUT_NAME "${output}"
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  foreach(standard c_std_11 cxx_std_17)
    string(REGEX REPLACE "_std_.*" "" language ${standard})
    string(TOUPPER ${language} language)
    if(language IN_LIST languages)
      target_compile_features(${name} PRIVATE ${standard})
    endif()
  endforeach()
  target_link_libraries(${name} PRIVATE tenon::headers)
  if(UNIX)
    target_link_libraries(${name} PRIVATE m)
  endif()
  if(UNIX AND NOT APPLE)
    target_link_options(${name} PRIVATE "LINKER:--version-script=${tenon_EXPORTS}")
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS "${tenon_EXPORTS}")
  endif()
  if(TENON_COMMAND)
    add_test(NAME ${name}-check COMMAND ${TENON_COMMAND} check $<TARGET_FILE:${name}>)
    add_custom_target(${name}-bench COMMAND ${TENON_COMMAND} bench $<TARGET_FILE:${name}> DEPENDS ${name} USES_TERMINAL)
  endif()
endfunction()
