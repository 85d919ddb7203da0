// See image.h. The forms are those of nvrtc_compile.cpp; the symbols are read from the ELF file's own table.

#include "image.h"

#include <elf.h>

#include <cstdlib>
#include <cstring>

namespace fake {

namespace {

constexpr char TEXT_MAGIC[] = "// FAKECUDA ptx ";
constexpr char BINARY_MAGIC[] = "FAKECUDA cubin ";
constexpr size_t LARGEST = 256u << 20;

int digit(char c) {
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::string decode(const char* text) {
    std::string out;
    unsigned group = 0;
    int bits = 0;
    for (int value; (value = digit(*text)) >= 0; ++text) {
        group = group << 6 | static_cast<unsigned>(value);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            out += static_cast<char>(group >> bits & 0xff);
        }
    }
    return out;
}

CUresult read_text(const char* text, Image& image) {
    image.architecture = std::atoi(text + sizeof TEXT_MAGIC - 1);
    const char* payload = std::strstr(text + 3, "\n// ");
    if (payload == nullptr) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    image.library = decode(payload + 4);
    return CUDA_SUCCESS;
}

CUresult read_binary(const char* data, Image& image) {
    char* end = nullptr;
    image.architecture = static_cast<int>(std::strtol(data + sizeof BINARY_MAGIC - 1, &end, 10));
    const unsigned long size = std::strtoul(end, &end, 10);
    if (*end != '\n' || size > LARGEST) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    image.library.assign(end + 1, size);
    image.machine_code = true;
    return CUDA_SUCCESS;
}

template <class T>
T load(const std::string& bytes, size_t offset) {
    T value = {};
    if (offset <= bytes.size() && sizeof value <= bytes.size() - offset) {
        std::memcpy(&value, bytes.data() + offset, sizeof value);
    }
    return value;
}

std::string text_at(const std::string& bytes, size_t offset) {
    return offset < bytes.size() ? std::string(bytes.c_str() + offset) : std::string();
}

class Elf {
  public:
    explicit Elf(const std::string& bytes) : bytes_(bytes), header_(load<Elf64_Ehdr>(bytes, 0)) {}

    Symbols symbols() const {
        Symbols found;
        for (unsigned i = 0; i < header_.e_shnum; ++i) {
            const Elf64_Shdr table = section(i);
            if (table.sh_type == SHT_SYMTAB) {
                read(table, found);
            }
        }
        return found;
    }

  private:
    Elf64_Shdr section(unsigned i) const {
        return load<Elf64_Shdr>(bytes_, header_.e_shoff + static_cast<size_t>(i) * sizeof(Elf64_Shdr));
    }

    // Constants with addresses in them lie in .data.rel.ro, which is writable in the file only.
    bool writable(const Elf64_Sym& symbol) const {
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= header_.e_shnum) {
            return false;
        }
        const Elf64_Shdr home = section(symbol.st_shndx);
        const std::string name = text_at(bytes_, section(header_.e_shstrndx).sh_offset + home.sh_name);
        return (home.sh_flags & SHF_WRITE) != 0 && name.compare(0, 12, ".data.rel.ro") != 0;
    }

    void read(const Elf64_Shdr& table, Symbols& found) const {
        const Elf64_Shdr names = section(table.sh_link);
        for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
            const auto symbol = load<Elf64_Sym>(bytes_, table.sh_offset + at);
            if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0) {
                continue;
            }
            const std::string name = text_at(bytes_, names.sh_offset + symbol.st_name);
            if (ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL && symbol.st_shndx != SHN_UNDEF) {
                found.globals[name] = symbol.st_size;
            }
            if (name.compare(0, 3, "_ZZ") == 0 && writable(symbol)) {
                found.locals.push_back({name, symbol.st_value, symbol.st_size});
            }
        }
    }

    const std::string& bytes_;
    Elf64_Ehdr header_;
};

}  // namespace

CUresult read_image(const void* data, Image& image) {
    const char* text = static_cast<const char*>(data);
    CUresult result = CUDA_ERROR_INVALID_IMAGE;
    if (std::strncmp(text, TEXT_MAGIC, sizeof TEXT_MAGIC - 1) == 0) {
        result = read_text(text, image);
    } else if (std::strncmp(text, BINARY_MAGIC, sizeof BINARY_MAGIC - 1) == 0) {
        result = read_binary(text, image);
    }
    const bool elf = image.library.size() > sizeof(Elf64_Ehdr) && image.library.compare(0, 4, "\x7f" "ELF") == 0;
    return result == CUDA_SUCCESS && !elf ? CUDA_ERROR_INVALID_IMAGE : result;
}

Symbols read_symbols(const std::string& library) { return Elf(library).symbols(); }

}  // namespace fake
