// Files, processes and hashes for the fake compiler.
#pragma once

#include <string>
#include <vector>

namespace fake_nvrtc {

// A folder of its own below the system's temporary folder, removed with all it holds at the end.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

bool read_file(const std::string& path, std::string& contents);
bool write_file(const std::string& path, const std::string& contents);
// Makes the folders above `path`.
bool make_parents(const std::string& path);

// Runs a program with both outputs in `output`; returns its exit status, or -1 where it could not be started.
int run(const std::vector<std::string>& arguments, const std::string& output);

// 128 bits of FNV-1a (two starting values), in hexadecimal.
std::string hash(const std::string& text);
std::string base64(const std::string& bytes);

// The results of earlier compilations; `key` is a hash. `get` is false where there is none or it is damaged.
bool cache_get(const std::string& key, std::string& bytes);
void cache_put(const std::string& key, const std::string& bytes);

}  // namespace fake_nvrtc
