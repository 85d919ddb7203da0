// In the place of a header of TensorFlow's that includes one which its package does not have.
#ifndef THEIRS_STATUS_TEST_UTIL_H
#define THEIRS_STATUS_TEST_UTIL_H

#include <gtest/gtest.h>

#define TF_EXPECT_OK(status) EXPECT_TRUE((status).ok())
#define TF_ASSERT_OK(status) ASSERT_TRUE((status).ok())

#endif
