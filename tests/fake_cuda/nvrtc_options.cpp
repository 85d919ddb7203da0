// The options of the runtime compiler: those with a meaning for the host compiler are passed on, those that only
// steer code generation for a GPU are taken and dropped, all others are refused.

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "nvrtc.h"

namespace fake_nvrtc {

namespace {

// Without a value, or with one behind `=`.
constexpr const char* IGNORED[] = {
    "--use_fast_math", "-use_fast_math", "--fmad", "-fmad", "--ftz", "-ftz", "--prec-div", "-prec-div", "--prec-sqrt",
    "-prec-sqrt", "--maxrregcount", "-maxrregcount", "--generate-line-info", "-lineinfo", "--device-debug", "-G",
    "--extra-device-vectorization", "-extra-device-vectorization", "--relocatable-device-code", "-rdc",
    "--device-c", "-dc", "--device-w", "-dw", "--extensible-whole-program", "-ewp", "--disable-warnings", "-w",
    "--restrict", "-restrict", "--device-as-default-execution-space", "-default-device", "--device-int128",
    "-device-int128", "--display-error-number", "-err-no", "--no-display-error-number", "-no-err-no",
    "--diag-error", "-diag-error", "--diag-suppress", "-diag-suppress", "--diag-warn", "-diag-warn", "--Werror",
    "-Werror", "--modify-stack-limit", "-modify-stack-limit", "--builtin-move-forward", "-builtin-move-forward",
    "--builtin-initializer-list", "-builtin-initializer-list", "--optimization-info", "-opt-info", "--version-ident",
    "-dQ", "--ptxas-options", "-Xptxas", "--dopt", "-dopt", "--ofast-compile", "-Ofc", "--split-compile",
    "-split-compile", "--minimal", "-minimal", "--device-float128", "-device-float128", "--frandom-seed",
    "-frandom-seed", "--no-source-include", "-no-source-include", "--no-cache", "-no-cache", "--fdevice-syntax-only",
    "--brief-diagnostics", "-brief-diag",
};

// Of those ignored, the ones that take the next argument as a value where there is no `=`.
constexpr const char* WITH_VALUE[] = {"--maxrregcount", "-maxrregcount", "-Xptxas", "--ptxas-options", "-dopt",
                                      "--dopt",         "--diag-suppress", "-diag-suppress", "--diag-error",
                                      "--diag-warn"};

template <size_t n>
bool listed(const char* const (&list)[n], const std::string& name) {
    return std::any_of(list, list + n, [&](const char* entry) { return name == entry; });
}

struct Reader {
    int count;
    const char* const* options;
    int at = 0;

    // The value of option `long_name` or `short_name` at the present place: behind `=`, behind the short name, or
    // the next argument.
    bool value(const std::string& option, const char* long_name, const char* short_name, bool glued, std::string& out) {
        for (const char* name : {long_name, short_name}) {
            const size_t length = std::strlen(name);
            if (option.compare(0, length, name) != 0) {
                continue;
            }
            if (option.size() == length) {
                if (at + 1 >= count || options[at + 1] == nullptr) {
                    return false;
                }
                out = options[++at];
                return true;
            }
            if (option[length] == '=') {
                out = option.substr(length + 1);
                return true;
            }
            if (glued && name == short_name) {
                out = option.substr(length);
                return true;
            }
        }
        return false;
    }
};

bool parse_architecture(const std::string& value, Options& parsed) {
    const bool machine = value.compare(0, 3, "sm_") == 0;
    if (!machine && value.compare(0, 8, "compute_") != 0) {
        return false;
    }
    const char* digits = value.c_str() + (machine ? 3 : 8);
    char* end = nullptr;
    const long number = std::strtol(digits, &end, 10);
    const bool suffix = *end == 0 || ((*end == 'a' || *end == 'f') && end[1] == 0 && number >= 90);
    const std::vector<int>& known = architectures();
    if (end == digits || !suffix || std::find(known.begin(), known.end(), number) == known.end()) {
        return false;
    }
    parsed.architecture = static_cast<int>(number);
    parsed.machine_code = machine;
    return true;
}

bool parse_standard(const std::string& value, Options& parsed) {
    if (value != "c++03" && value != "c++11" && value != "c++14" && value != "c++17" && value != "c++20") {
        return false;
    }
    // The text in front of every source is C++17.
    parsed.standard = value == "c++20" ? "gnu++20" : "gnu++17";
    return true;
}

bool parse_one(Reader& reader, const std::string& option, Options& parsed) {
    std::string value;
    if (reader.value(option, "--gpu-architecture", "-arch", false, value)) {
        return parse_architecture(value, parsed);
    }
    if (reader.value(option, "--std", "-std", false, value)) {
        return parse_standard(value, parsed);
    }
    if (reader.value(option, "--define-macro", "-D", true, value)) {
        const size_t equals = value.find('=');
        const std::string text = equals == std::string::npos ? "1" : value.substr(equals + 1);
        parsed.macros += "#define " + value.substr(0, equals) + " " + text + "\n";
        return true;
    }
    if (reader.value(option, "--undefine-macro", "-U", true, value)) {
        parsed.macros += "#undef " + value + "\n";
        return true;
    }
    if (reader.value(option, "--include-path", "-I", true, value)) {
        parsed.arguments.push_back("-I" + value);
        parsed.search_paths = true;
        return true;
    }
    if (reader.value(option, "--pre-include", "-include", false, value)) {
        parsed.arguments.push_back("-include");
        parsed.arguments.push_back(value);
        parsed.search_paths = true;
        return true;
    }
    const std::string name = option.substr(0, option.find('='));
    if (!listed(IGNORED, name)) {
        return false;
    }
    if (name.size() == option.size() && listed(WITH_VALUE, name)) {
        ++reader.at;
    }
    return true;
}

}  // namespace

const std::vector<int>& architectures() {
    static const std::vector<int> list = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
    return list;
}

bool parse_options(int count, const char* const* options, Options& parsed, std::string& problem) {
    Reader reader{count, options};
    for (; reader.at < count; ++reader.at) {
        const std::string option = options[reader.at] != nullptr ? options[reader.at] : "";
        if (!parse_one(reader, option, parsed)) {
            problem = option;
            return false;
        }
    }
    return true;
}

}  // namespace fake_nvrtc
