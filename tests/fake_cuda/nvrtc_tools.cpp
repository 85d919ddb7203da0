// See nvrtc_tools.h.

#include "nvrtc_tools.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace fake_nvrtc {

namespace {

std::string temporary_root() {
    const char* folder = std::getenv("TMPDIR");
    return folder != nullptr && *folder != 0 ? folder : "/tmp";
}

std::string cache_folder() {
    if (const char* folder = std::getenv("FAKE_CUDA_CACHE"); folder != nullptr && *folder != 0) {
        return folder;
    }
    if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != 0) {
        return std::string(folder) + "/fake-cuda";
    }
    return temporary_root() + "/fake-cuda-cache-" + std::to_string(getuid());
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_(temporary_root() + "/fake-nvrtc-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
        path_.clear();
    }
}

TemporaryFolder::~TemporaryFolder() {
    if (!path_.empty()) {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
}

bool read_file(const std::string& path, std::string& contents) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return false;
    }
    std::ostringstream text;
    text << file.rdbuf();
    contents = text.str();
    return file.good() || file.eof();
}

bool write_file(const std::string& path, const std::string& contents) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
    file.close();
    return static_cast<bool>(file);
}

bool make_parents(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    return !error;
}

int run(const std::vector<std::string>& arguments, const std::string& output) {
    std::vector<char*> list;
    for (const std::string& argument : arguments) {
        list.push_back(const_cast<char*>(argument.c_str()));
    }
    list.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, list[0], &actions, nullptr, list.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        return -1;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            return -1;
        }
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string hash(const std::string& text) {
    uint64_t parts[2] = {0xcbf29ce484222325ull, 0x9ae16a3b2f90404full};
    for (const char c : text) {
        for (uint64_t& part : parts) {
            part = (part ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
        }
        parts[1] ^= parts[1] >> 29;
    }
    char out[40];
    std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(parts[0]),
                  static_cast<unsigned long long>(parts[1]));
    return out;
}

std::string base64(const std::string& bytes) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    out.reserve(bytes.size() / 3 * 4 + 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        uint32_t group = 0;
        for (size_t k = 0; k < 3; ++k) {
            group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        }
        for (size_t k = 0; k < 4; ++k) {
            out += i + k <= bytes.size() ? DIGITS[group >> (18 - 6 * k) & 63] : '=';
        }
    }
    return out;
}

bool cache_get(const std::string& key, std::string& bytes) {
    std::string stored;
    if (!read_file(cache_folder() + "/" + key, stored) || stored.size() < 32) {
        return false;
    }
    bytes = stored.substr(32);
    return hash(bytes) == stored.substr(0, 32);
}

void cache_put(const std::string& key, const std::string& bytes) {
    static std::atomic<unsigned> counter{0};
    const std::string path = cache_folder() + "/" + key;
    if (!make_parents(path)) {
        return;
    }
    const std::string partial = path + "." + std::to_string(getpid()) + "." + std::to_string(counter++);
    if (!write_file(partial, hash(bytes) + bytes) || std::rename(partial.c_str(), path.c_str()) != 0) {
        unlink(partial.c_str());
    }
}

}  // namespace fake_nvrtc
