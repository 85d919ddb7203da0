// A program of the fake runtime compiler, and how its options are read.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fake_nvrtc {

enum Result : int {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
    NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4,
    NVRTC_ERROR_INVALID_OPTION = 5,
    NVRTC_ERROR_COMPILATION = 6,
    NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
    NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
    NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
    NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
    NVRTC_ERROR_INTERNAL_ERROR = 11,
};

struct Options {
    int architecture = 75;
    bool machine_code = false;  // sm_XX rather than compute_XX
    bool search_paths = false;  // whether files outside the program can be read
    std::string standard = "gnu++17";
    std::string macros;                  // the orders to define and undefine, as lines of source
    std::vector<std::string> arguments;  // what else the host compiler gets
};

// Reads the options; `problem` names the first one that the real compiler would refuse.
bool parse_options(int count, const char* const* options, Options& parsed, std::string& problem);

// The architectures that the real compiler of this version takes.
const std::vector<int>& architectures();

struct Program {
    std::string source;
    std::string name;
    std::vector<std::pair<std::string, std::string>> headers;  // name, text
    std::vector<std::string> expressions;
    std::vector<std::string> lowered;  // one name per expression
    std::string log;
    std::string ptx;
    std::string cubin;
    bool compiled = false;

    Result compile(const Options& options);
};

}  // namespace fake_nvrtc
