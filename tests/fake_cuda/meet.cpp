// See meet.h. The setting is a list such as "htod bytes=4096,fill": texts of copies, names of kernels. The first command
// of each waits until there is one of every other; what is missing after a minute does not come.

#include "meet.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "settings.h"

namespace fake {

namespace {

constexpr std::chrono::seconds LONGEST{60};

struct Meeting {
    std::mutex mutex;
    std::condition_variable changed;
    std::string setting;  // what `missing` was read from
    std::set<std::string> missing;
};

Meeting& meeting() {
    static Meeting& meeting = *new Meeting;
    return meeting;
}

std::set<std::string> parts_of(const std::string& list) {
    std::set<std::string> parts;
    for (size_t at = 0; at < list.size();) {
        const size_t end = std::min(list.find(',', at), list.size());
        parts.insert(list.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

void meet(const std::string& text) {
    Meeting& m = meeting();
    std::unique_lock<std::mutex> guard(m.mutex);
    const std::string setting = m.setting;
    if (m.missing.erase(text) == 0) {
        return;
    }
    if (m.missing.empty()) {
        log("met %s", setting.c_str());
        m.changed.notify_all();
    }
    const bool over = m.changed.wait_for(guard, LONGEST, [&] { return m.missing.empty() || m.setting != setting; });
    if (!over) {
        m.missing.clear();  // who comes now comes too late
        report("%s waited for others of %s and was alone", text.c_str(), setting.c_str());
    }
}

}  // namespace

std::function<CUresult()> meeting(const std::string& text, std::function<CUresult()> run) {
    const std::string list = setting("MEET", "");
    Meeting& m = meeting();
    {
        const std::lock_guard<std::mutex> guard(m.mutex);
        if (list != m.setting) {
            m.setting = list;
            m.missing = parts_of(list);
            m.changed.notify_all();
        }
    }
    if (parts_of(list).count(text) == 0) {
        return run;
    }
    return [text, run] {
        meet(text);
        return run();
    };
}

}  // namespace fake
