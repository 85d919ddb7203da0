// Commands that wait for each other, which they can only where nothing orders them.
#pragma once

#include <functional>
#include <string>

#include "types.h"

namespace fake {

// `run`, which first waits for the others where the setting MEET names a command of this text.
std::function<CUresult()> meeting(const std::string& text, std::function<CUresult()> run);

}  // namespace fake
