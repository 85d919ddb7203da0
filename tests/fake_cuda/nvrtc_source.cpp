// See nvrtc_source.h. A tokeniser, not a parser: it knows strings, comments (none are left after preprocessing),
// braces and the qualifiers of CUDA, which is all that finding `extern "C" __global__` needs.

#include "nvrtc_source.h"

#include <cctype>
#include <set>

namespace fake_nvrtc {

namespace {

struct Token {
    size_t begin;
    size_t end;
};

bool word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The end of the literal that begins at `at` with a quote.
size_t literal_end(const std::string& s, size_t at) {
    const char quote = s[at];
    if (quote == '"' && at > 0 && s[at - 1] == 'R') {
        const size_t open = s.find('(', at);
        if (open == std::string::npos) {
            return s.size();
        }
        const std::string close = ")" + s.substr(at + 1, open - at - 1) + "\"";
        const size_t found = s.find(close, open);
        return found == std::string::npos ? s.size() : found + close.size();
    }
    for (size_t i = at + 1; i < s.size(); ++i) {
        if (s[i] == '\\') {
            ++i;
        } else if (s[i] == quote) {
            return i + 1;
        }
    }
    return s.size();
}

std::vector<Token> tokens(const std::string& s) {
    std::vector<Token> list;
    bool line_start = true;
    for (size_t i = 0; i < s.size();) {
        const char c = s[i];
        size_t end = i + 1;
        if (std::isspace(static_cast<unsigned char>(c)) != 0) {
            line_start = line_start || c == '\n';
            i = end;
            continue;
        }
        if (c == '#' && line_start) {
            end = s.find('\n', i);
            i = end == std::string::npos ? s.size() : end;
            continue;
        }
        line_start = false;
        if (c == '"') {
            end = literal_end(s, i);
        } else if (c == '\'') {
            end = literal_end(s, i);
        } else if (word(c)) {
            while (end < s.size() && (word(s[end]) || (std::isdigit(static_cast<unsigned char>(c)) != 0 && s[end] == '\''))) {
                ++end;
            }
        }
        list.push_back({i, end});
        i = end;
    }
    return list;
}

class Scanner {
  public:
    explicit Scanner(const std::string& text) : text_(text), tokens_(tokens(text)) {}

    Source run() {
        for (size_t i = 0; i < tokens_.size(); ++i) {
            step(i);
        }
        source_.text += text_.substr(copied_);
        return std::move(source_);
    }

  private:
    std::string at(size_t i) const {
        return i < tokens_.size() ? text_.substr(tokens_[i].begin, tokens_[i].end - tokens_[i].begin) : std::string();
    }
    bool is(size_t i, const char* expected) const {
        return i < tokens_.size() && text_.compare(tokens_[i].begin, tokens_[i].end - tokens_[i].begin, expected) == 0;
    }

    void step(size_t i) {
        const char c = text_[tokens_[i].begin];
        if (c == '{') {
            braces_.push_back(i >= 2 && is(i - 1, "\"C\"") && is(i - 2, "extern"));
            declaration_ = i + 1;
        } else if (c == '}') {
            if (!braces_.empty()) {
                braces_.pop_back();
            }
            declaration_ = i + 1;
        } else if (c == ';') {
            declaration_ = i + 1;
        } else if (is(i, "__global__")) {
            kernel(i);
        } else if (is(i, "__shared__")) {
            shared(i);
        } else if (is(i, "__device__") && outermost() && variable(i)) {
            replace(i, "__attribute__((visibility(\"default\")))");
        }
    }

    void replace(size_t i, const char* text) {
        source_.text += text_.substr(copied_, tokens_[i].begin - copied_) + text;
        copied_ = tokens_[i].end;
    }

    // Whether the declaration with `__device__` at `i` is a variable's, which cuModuleGetGlobal must find.
    bool variable(size_t i) const {
        for (++i; i < tokens_.size(); ++i) {
            if (is(i, "__attribute__") || is(i, "alignas")) {
                i = behind(i + 1) - 1;
            } else if (is(i, "(") || is(i, "operator")) {
                return false;
            } else if (is(i, ";") || is(i, "=") || is(i, "[") || is(i, "{")) {
                return true;
            }
        }
        return false;
    }

    bool outermost() const {
        for (const bool linkage : braces_) {
            if (!linkage) {
                return false;
            }
        }
        return true;
    }

    // The token behind the parenthesis that closes the one at `open`.
    size_t behind(size_t open) const {
        int depth = 0;
        for (size_t i = open; i < tokens_.size(); ++i) {
            depth += is(i, "(") ? 1 : is(i, ")") ? -1 : 0;
            if (depth == 0) {
                return i + 1;
            }
        }
        return tokens_.size();
    }

    // The first argument of the list whose parenthesis is at `open`.
    std::string first_argument(size_t open) const {
        int depth = 0;
        for (size_t i = open; i < tokens_.size(); ++i) {
            const bool comma = depth == 1 && is(i, ",");
            depth += is(i, "(") ? 1 : is(i, ")") ? -1 : 0;
            if (comma || depth == 0) {
                return text_.substr(tokens_[open].end, tokens_[i].begin - tokens_[open].end);
            }
        }
        return std::string();
    }

    // Whether the declaration whose tokens run from `declaration_` to the name at `end` has C linkage.
    bool c_linkage(size_t end) const {
        for (size_t i = declaration_; i < end; ++i) {
            if (is(i, "template") || is(i, "static")) {
                return false;
            }
        }
        for (size_t i = declaration_; i + 1 < end; ++i) {
            if (is(i, "extern") && is(i + 1, "\"C\"")) {
                return true;
            }
        }
        for (const bool linkage : braces_) {
            if (linkage) {
                return true;
            }
        }
        return false;
    }

    void kernel(size_t i) {
        Kernel found;
        size_t name = i + 1;
        while (name < tokens_.size()) {
            if (is(name, "__launch_bounds__")) {
                found.bounds = first_argument(name + 1);
                name = behind(name + 1);
            } else if (is(name, "__attribute__") || is(name, "alignas")) {
                name = behind(name + 1);
            } else if (is(name + 1, "(")) {
                break;
            } else {
                ++name;
            }
        }
        if (name >= tokens_.size() || !outermost() || !c_linkage(name)) {
            return;
        }
        found.name = at(name);
        found.expression = found.name;
        if (names_.insert(found.name).second) {
            source_.kernels.push_back(found);
            return;
        }
        for (Kernel& earlier : source_.kernels) {
            if (earlier.name == found.name && earlier.bounds.empty()) {
                earlier.bounds = found.bounds;
            }
        }
    }

    // `alignas` behind `__shared__` must come first in C++, where that becomes `static`.
    void align_first(size_t i, size_t end) {
        for (size_t k = i; k < end && !is(k, "=") && !is(k, "["); ++k) {
            if (!is(k, "alignas")) {
                continue;
            }
            const size_t last = behind(k + 1) - 1;
            const size_t begin = tokens_[declaration_].begin;
            source_.text += text_.substr(copied_, begin - copied_);
            source_.text += text_.substr(tokens_[k].begin, tokens_[last].end - tokens_[k].begin) + " ";
            source_.text += text_.substr(begin, tokens_[k].begin - begin);
            copied_ = tokens_[last].end;
            return;
        }
    }

    // `extern __shared__ T name[];` is a pointer to the dynamic shared memory; other shared arrays stay as they are.
    void shared(size_t i) {
        size_t end = i;
        while (end < tokens_.size() && !is(end, ";")) {
            ++end;
        }
        bool external = false;
        for (size_t k = declaration_; k < i; ++k) {
            external = external || is(k, "extern");
        }
        const bool unsized = end >= 3 && is(end - 1, "]") && is(end - 2, "[");
        if (!external || !unsized || end == tokens_.size()) {
            align_first(i, end);
            return;
        }
        std::string type;
        const size_t name = end - 3;
        for (size_t k = declaration_; k < name; ++k) {
            if (is(k, "extern") || is(k, "__shared__") || is(k, "static")) {
                continue;
            }
            if (is(k, "__attribute__") || is(k, "alignas") || is(k, "__align__")) {
                k = behind(k + 1) - 1;
                continue;
            }
            type += at(k) + " ";
        }
        source_.text += text_.substr(copied_, tokens_[declaration_].begin - copied_);
        source_.text += type + "* const " + at(name) + " = reinterpret_cast<" + type + "*>(fake_cuda::dynamic_shared);";
        copied_ = tokens_[end].end;
    }

    const std::string& text_;
    std::vector<Token> tokens_;
    std::vector<bool> braces_;
    std::set<std::string> names_;
    Source source_;
    size_t declaration_ = 0;
    size_t copied_ = 0;
};

}  // namespace

Source scan(const std::string& preprocessed) { return Scanner(preprocessed).run(); }

std::string prologue() {
    return "#define __shared__ static __attribute__((used))\n"
           "#define __device__\n"
           "#define __global__ __attribute__((used))\n"
           "#define __launch_bounds__(...)\n"
           "#define __maxnreg__(n)\n"
           "#define __cluster_dims__(...)\n";
}

std::string epilogue(const std::vector<Kernel>& kernels) {
    std::string out =
        "\n# 1 \"entries\"\n"
        "namespace fake_cuda {\n"
        "uint3 thread_index, block_index, block_size, grid_size;\n"
        "const Runtime* runtime;\n"
        "alignas(1024) unsigned char dynamic_shared[DYNAMIC_SHARED_BYTES];\n";
    std::string list;
    for (size_t i = 0; i < kernels.size(); ++i) {
        const Kernel& kernel = kernels[i];
        const std::string id = std::to_string(i);
        const std::string wrapper = "Wrapper" + id;
        out += "constexpr auto function" + id + " = &::" + kernel.expression + ";\n";
        out += "using " + wrapper + " = Wrapper<decltype(+function" + id + "), function" + id + ">;\n";
        out += "static const Entry entry" + id + " = {\"" + kernel.name + "\", &" + wrapper + "::call, " + wrapper +
               "::count, " + wrapper + "::sizes, " + wrapper + "::aligns, " +
               (kernel.bounds.empty() ? std::string("1024") : "static_cast<unsigned>(" + kernel.bounds + ")") + "};\n";
        list += "&entry" + id + ", ";
    }
    out += "static const Entry* const entries[] = {" + list + "nullptr};\n";
    out += "}\n"
           "extern \"C\" __attribute__((visibility(\"default\"))) const fake_cuda::Module fake_cuda_module;\n"
           "const fake_cuda::Module fake_cuda_module = {fake_cuda::ABI_VERSION, " +
           std::to_string(kernels.size()) +
           ", fake_cuda::entries, &fake_cuda::runtime,\n"
           "  reinterpret_cast<fake_cuda::Index*>(&fake_cuda::thread_index),\n"
           "  reinterpret_cast<fake_cuda::Index*>(&fake_cuda::block_index),\n"
           "  reinterpret_cast<fake_cuda::Index*>(&fake_cuda::block_size),\n"
           "  reinterpret_cast<fake_cuda::Index*>(&fake_cuda::grid_size),\n"
           "  fake_cuda::dynamic_shared, fake_cuda::DYNAMIC_SHARED_BYTES};\n";
    return out;
}

}  // namespace fake_nvrtc
