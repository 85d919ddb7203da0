// What the files of the C++ zoo share.
#ifndef ZOO_HPP
#define ZOO_HPP

#define TENON_PLUGIN_NAME "zoo-cpp"
#define TENON_PLUGIN_VERSION "0.1.0"
#include "tenon.hpp"

#endif // ZOO_HPP
