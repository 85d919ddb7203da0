// Compiling: preprocess with the host compiler, find the kernels, compile to a small shared library.
//
// What is handed out as PTX is a text of comments with the library in base64, as PTX has no length but its final NUL;
// what is handed out as CUBIN begins with a line that states the length.

#include <cstdlib>

#include "nvrtc.h"
#include "nvrtc_source.h"
#include "nvrtc_tools.h"

// The text in front of every kernel source, put here by build.sh.
asm(".section .rodata\n"
    ".global fake_nvrtc_shim\n.hidden fake_nvrtc_shim\n"
    "fake_nvrtc_shim:\n.incbin \"" FAKE_SHIM_FILE "\"\n.byte 0\n"
    ".text\n");
extern "C" const char fake_nvrtc_shim[];

namespace fake_nvrtc {

namespace {

std::string host_compiler() {
    const char* compiler = std::getenv("FAKE_CUDA_CXX");
    return compiler != nullptr && *compiler != 0 ? compiler : "g++";
}

const std::vector<std::string>& code_flags() {
    static const std::vector<std::string> flags = {
        "-O2", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-math-errno", "-fno-exceptions", "-fno-rtti",
        "-fvisibility=hidden", "-fno-gnu-unique", "-fno-threadsafe-statics", "-w", "-nostdinc", "-nostdinc++"};
    return flags;
}

std::string join(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) {
        all += part + '\0';
    }
    return all;
}

void erase_all(std::string& text, const std::string& what) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
        text.erase(at, what.size());
    }
}

// A name that cannot leave the temporary folder.
std::string safe_name(const std::string& name) {
    std::string safe = name.empty() ? "default_program" : name;
    for (char& c : safe) {
        c = c == '/' || c == '\\' ? '_' : c;
    }
    return safe;
}

class Compilation {
  public:
    Compilation(Program& program, const Options& options) : program_(program), options_(options) {}

    Result run(std::string& library) {
        std::string key = options_.search_paths ? std::string() : key_of(raw_text());
        if (!key.empty() && cache_get(key, library)) {
            return NVRTC_SUCCESS;
        }
        if (folder_.path().empty() || !write_inputs()) {
            program_.log = "cannot write the sources below the temporary folder";
            return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
        }
        std::string text;
        if (!preprocess(text)) {
            return NVRTC_ERROR_COMPILATION;
        }
        if (key.empty()) {
            key = key_of(text);
            if (cache_get(key, library)) {
                return NVRTC_SUCCESS;
            }
        }
        if (!translate(text, library)) {
            return NVRTC_ERROR_COMPILATION;
        }
        cache_put(key, library);
        return NVRTC_SUCCESS;
    }

  private:
    std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

    std::string raw_text() const {
        std::string all = join({program_.name, program_.source});
        for (const auto& [name, text] : program_.headers) {
            all += join({name, text});
        }
        return all;
    }

    std::string key_of(const std::string& text) const {
        const std::string machine = std::to_string(options_.architecture);
        return hash(join({"1", __VERSION__, host_compiler(), fake_nvrtc_shim, prologue(), epilogue({}), options_.standard,
                          machine, macros(), join(code_flags()), join(options_.arguments), join(program_.expressions), text}));
    }

    bool write_inputs() const {
        for (const auto& [name, text] : program_.headers) {
            const bool inside = !name.empty() && name[0] != '/' && name.find("..") == std::string::npos;
            const std::string file = path("include/" + name);
            if (!inside || !make_parents(file) || !write_file(file, text)) {
                return false;
            }
        }
        const std::string source = path("source/" + safe_name(program_.name));
        return make_parents(source) && write_file(source, program_.source) &&
               write_file(path("simt.h"), fake_nvrtc_shim) && write_file(path("macros.h"), macros());
    }

    // All macros of the program, which are defined behind the text of the fake so that they do not change it.
    std::string macros() const {
        return "#define __CUDA_ARCH__ " + std::to_string(options_.architecture * 10) +
               "\n#define __CUDACC_RTC__ 1\n#define __CUDACC_VER_MAJOR__ 13\n#define __CUDACC_VER_MINOR__ 0\n"
               "#define TENON_EMULATED 1\n" +
               options_.macros;
    }

    // Runs the host compiler; its messages go to the program's log, without the temporary folder's name.
    bool host(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), host_compiler());
        arguments.insert(arguments.end(), code_flags().begin(), code_flags().end());
        arguments.push_back("-std=" + options_.standard);
        // Of these options the last that fits counts.
        for (const char* part : {"/", "/include/", "/source/"}) {
            arguments.push_back("-ffile-prefix-map=" + folder_.path() + part + "=");
        }
        const int status = fake_nvrtc::run(arguments, path("log"));
        std::string messages;
        read_file(path("log"), messages);
        for (const char* part : {"/source/", "/include/", "/"}) {
            erase_all(messages, folder_.path() + part);
        }
        program_.log += status < 0 ? "cannot run the host compiler `" + host_compiler() + "`\n" : messages;
        return status == 0;
    }

    bool preprocess(std::string& text) {
        std::vector<std::string> arguments = {"-E", "-x", "c++", "-include", path("simt.h"), "-include", path("macros.h"),
                                              "-I" + path("include")};
        arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
        arguments.insert(arguments.end(), {path("source/" + safe_name(program_.name)), "-o", path("text")});
        if (!host(arguments) || !read_file(path("text"), text)) {
            return false;
        }
        for (const char* part : {"/source/", "/include/", "/"}) {
            erase_all(text, folder_.path() + part);
        }
        return true;
    }

    bool translate(const std::string& text, std::string& library) {
        Source source = scan(text);
        for (size_t i = 0; i < program_.expressions.size(); ++i) {
            std::string expression = program_.expressions[i];
            while (!expression.empty() && (expression[0] == '&' || expression[0] == ':' || expression[0] == ' ')) {
                expression.erase(0, 1);
            }
            source.kernels.push_back({"fake_expression_" + std::to_string(i), expression, std::string()});
        }
        const std::string file = path("kernels.cpp");
        if (!write_file(file, prologue() + source.text + epilogue(source.kernels))) {
            return false;
        }
        return host({"-x", "c++", "-shared", file, "-o", path("kernels.so"), "-lm"}) && read_file(path("kernels.so"), library);
    }

    Program& program_;
    const Options& options_;
    TemporaryFolder folder_;
};

}  // namespace

Result Program::compile(const Options& options) {
    log.clear();
    ptx.clear();
    cubin.clear();
    std::string library;
    const Result result = Compilation(*this, options).run(library);
    compiled = result == NVRTC_SUCCESS;
    if (!compiled) {
        return result;
    }
    for (size_t i = lowered.size(); i < expressions.size(); ++i) {
        lowered.push_back("fake_expression_" + std::to_string(i));
    }
    const std::string arch = std::to_string(options.architecture);
    ptx = "// FAKECUDA ptx " + arch + "\n.version 9.0\n.target sm_" + arch + "\n.address_size 64\n// " + base64(library) + "\n";
    if (options.machine_code) {
        cubin = "FAKECUDA cubin " + arch + " " + std::to_string(library.size()) + "\n" + library;
    }
    return NVRTC_SUCCESS;
}

}  // namespace fake_nvrtc
