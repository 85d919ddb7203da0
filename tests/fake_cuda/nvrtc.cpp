// The interface of the runtime compiler, version 13.0.

#include "nvrtc.h"

#include <cstring>
#include <mutex>
#include <set>

#define NVRTC_API extern "C" __attribute__((visibility("default"))) int

using fake_nvrtc::Program;

namespace {

std::mutex& lock() {
    static std::mutex& mutex = *new std::mutex;
    return mutex;
}

std::set<Program*>& programs() {
    static std::set<Program*>& list = *new std::set<Program*>;
    return list;
}

bool known(Program* program) {
    const std::lock_guard<std::mutex> guard(lock());
    return programs().count(program) != 0;
}

// Copies `text` with its final NUL.
int give_text(Program* program, std::string Program::*member, char* out) {
    if (!known(program)) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
    }
    if (out == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    const std::string& text = program->*member;
    std::memcpy(out, text.c_str(), text.size() + 1);
    return fake_nvrtc::NVRTC_SUCCESS;
}

int give_size(Program* program, std::string Program::*member, size_t extra, size_t* out) {
    if (!known(program)) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
    }
    if (out == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    *out = (program->*member).size() + extra;
    return fake_nvrtc::NVRTC_SUCCESS;
}

}  // namespace

NVRTC_API nvrtcVersion(int* major, int* minor) {
    if (major == nullptr || minor == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    *major = 13;
    *minor = 0;
    return fake_nvrtc::NVRTC_SUCCESS;
}

extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int result) {
    static const char* const NAMES[] = {
        "NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION", "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION", "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "NVRTC_ERROR_INTERNAL_ERROR"};
    constexpr int count = sizeof NAMES / sizeof *NAMES;
    return result >= 0 && result < count ? NAMES[result] : "NVRTC_ERROR unknown";
}

NVRTC_API nvrtcGetNumSupportedArchs(int* count) {
    if (count == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    *count = static_cast<int>(fake_nvrtc::architectures().size());
    return fake_nvrtc::NVRTC_SUCCESS;
}

NVRTC_API nvrtcGetSupportedArchs(int* list) {
    if (list == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    for (const int architecture : fake_nvrtc::architectures()) {
        *list++ = architecture;
    }
    return fake_nvrtc::NVRTC_SUCCESS;
}

NVRTC_API nvrtcCreateProgram(Program** out, const char* source, const char* name, int header_count,
                             const char* const* headers, const char* const* names) {
    if (out == nullptr || source == nullptr || header_count < 0 ||
        (header_count > 0 && (headers == nullptr || names == nullptr))) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    Program* program = new Program;
    program->source = source;
    program->name = name != nullptr ? name : "";
    for (int i = 0; i < header_count; ++i) {
        program->headers.emplace_back(names[i], headers[i]);
    }
    const std::lock_guard<std::mutex> guard(lock());
    programs().insert(program);
    *out = program;
    return fake_nvrtc::NVRTC_SUCCESS;
}

NVRTC_API nvrtcDestroyProgram(Program** program) {
    if (program == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
    }
    {
        const std::lock_guard<std::mutex> guard(lock());
        if (programs().erase(*program) == 0) {
            return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
        }
    }
    delete *program;
    *program = nullptr;
    return fake_nvrtc::NVRTC_SUCCESS;
}

NVRTC_API nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    if (!known(program)) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
    }
    if (count < 0 || (count > 0 && options == nullptr)) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    fake_nvrtc::Options parsed;
    std::string problem;
    if (!fake_nvrtc::parse_options(count, options, parsed, problem)) {
        program->log = "nvrtc: error: unrecognized option or value: '" + problem + "'\n";
        return fake_nvrtc::NVRTC_ERROR_INVALID_OPTION;
    }
    return program->compile(parsed);
}

NVRTC_API nvrtcGetPTXSize(Program* program, size_t* size) { return give_size(program, &Program::ptx, 1, size); }
NVRTC_API nvrtcGetPTX(Program* program, char* ptx) { return give_text(program, &Program::ptx, ptx); }
NVRTC_API nvrtcGetCUBINSize(Program* program, size_t* size) { return give_size(program, &Program::cubin, 0, size); }

NVRTC_API nvrtcGetCUBIN(Program* program, char* cubin) {
    if (!known(program)) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
    }
    if (cubin == nullptr || program->cubin.empty()) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    std::memcpy(cubin, program->cubin.data(), program->cubin.size());
    return fake_nvrtc::NVRTC_SUCCESS;
}

NVRTC_API nvrtcGetProgramLogSize(Program* program, size_t* size) { return give_size(program, &Program::log, 1, size); }
NVRTC_API nvrtcGetProgramLog(Program* program, char* log) { return give_text(program, &Program::log, log); }

NVRTC_API nvrtcAddNameExpression(Program* program, const char* expression) {
    if (!known(program)) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
    }
    if (expression == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    if (program->compiled) {
        return fake_nvrtc::NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    }
    program->expressions.emplace_back(expression);
    return fake_nvrtc::NVRTC_SUCCESS;
}

NVRTC_API nvrtcGetLoweredName(Program* program, const char* expression, const char** lowered) {
    if (!known(program)) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_PROGRAM;
    }
    if (expression == nullptr || lowered == nullptr) {
        return fake_nvrtc::NVRTC_ERROR_INVALID_INPUT;
    }
    if (!program->compiled) {
        return fake_nvrtc::NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
    }
    for (size_t i = 0; i < program->expressions.size(); ++i) {
        if (program->expressions[i] == expression) {
            *lowered = program->lowered[i].c_str();
            return fake_nvrtc::NVRTC_SUCCESS;
        }
    }
    return fake_nvrtc::NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
}
