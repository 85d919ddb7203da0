#include "selftest_api.h"
namespace selftest { void test_language() {} void test_driver() {} void test_capture() {} }
