// gemmlowp: products of bytes to 32 bits, and to bytes with zero points, bias and requantisation; the right factor by
// rows and by columns.
//
// Build: g++ -O3 -std=c++17 -march=native -DGEMMLOWP_ENABLE_AVX2 -I<gemmlowp> -pthread gemm_lowp.cpp -o gemm_lowp
// Usage: gemm_lowp VERSION THREADS < gemm_sizes.txt
#include <tuple>
#include <vector>

#include "public/gemmlowp.h"
#include "public/output_stages.h"

#include "bench.h"

using gemmlowp::MapOrder;
using gemmlowp::MatrixMap;

constexpr int LEFT_ZERO = 128, RIGHT_ZERO = 121;

/// Factors, results and what the stages after the sums need.
template <MapOrder Right>
struct Product {
    int m, n, k;
    gemmlowp::GemmContext *context;
    std::vector<uint8_t> a, b, bytes;
    std::vector<int32_t> sums, bias;

    Product(int m, int n, int k, gemmlowp::GemmContext *context)
        : m(m), n(n), k(k), context(context), a(size_t(m) * k), b(size_t(k) * n), bytes(size_t(m) * n),
          sums(size_t(m) * n), bias(n, 77) {
        for (size_t i = 0; i < a.size(); i++) a[i] = uint8_t((i * 2654435761u) >> 16);
        for (size_t i = 0; i < b.size(); i++) b[i] = uint8_t((i * 2246822519u) >> 16);
    }

    template <typename Out, typename Stages>
    void multiply(std::vector<Out> &out, const Stages &stages) {
        MatrixMap<const uint8_t, MapOrder::RowMajor> left(a.data(), m, k);
        MatrixMap<const uint8_t, Right> right(b.data(), k, n);
        MatrixMap<Out, MapOrder::RowMajor> result(out.data(), m, n);
        gemmlowp::GemmWithOutputPipeline<uint8_t, Out, gemmlowp::DefaultL8R8BitDepthParams>(
            context, left, right, &result, -LEFT_ZERO, -RIGHT_ZERO, stages);
    }

    static void to_sums(void *with) {
        auto *product = static_cast<Product *>(with);
        product->multiply(product->sums, std::make_tuple());
    }

    static void to_bytes(void *with) {
        auto *product = static_cast<Product *>(with);
        gemmlowp::OutputStageBiasAddition<gemmlowp::VectorMap<const int32_t, gemmlowp::VectorShape::Row>> bias;
        bias.bias_vector = {product->bias.data(), product->n};
        gemmlowp::OutputStageQuantizeDownInt32ByFixedPoint down;
        down.result_offset_after_shift = 128;
        down.result_fixedpoint_multiplier = 1518500250;
        down.result_shift = 9;
        gemmlowp::OutputStageClamp clamp;
        clamp.min = 0;
        clamp.max = 255;
        gemmlowp::OutputStageSaturatingCastToUint8 cast;
        product->multiply(product->bytes, std::make_tuple(bias, down, clamp, cast));
    }

    /// Whether some sums, spread over all, are what they should be.
    bool is_right() const {
        for (int t = 0; t < 20; t++) {
            int row = t * 7919 % m, column = t * 104729 % n;
            int64_t sum = 0;
            for (int i = 0; i < k; i++) {
                size_t right = Right == MapOrder::RowMajor ? size_t(i) * n + column : size_t(column) * k + i;
                sum += (int64_t(a[size_t(row) * k + i]) - LEFT_ZERO) * (int64_t(b[right]) - RIGHT_ZERO);
            }
            if (sum != sums[size_t(row) * n + column]) return false;
        }
        return true;
    }
};

template <MapOrder Right>
static void measure(const char *peer, char **argv, int m, int n, int k, gemmlowp::GemmContext *context) {
    Product<Right> product(m, n, k, context);
    char size[64];
    snprintf(size, sizeof size, "%dx%dx%d", m, n, k);
    product.to_sums(&product);
    if (!product.is_right()) {
        fprintf(stderr, "# skipped %s %s: wrong result\n", peer, size);
        return;
    }
    row sums = {"gemm_u8u8s32", peer, argv[1], size, "GOP/s", atoi(argv[2]), 2.0 * m * n * k};
    row bytes = sums;
    bytes.bench = "gemm_u8u8_requant_u8";
    bench_run(&sums, Product<Right>::to_sums, &product);
    bench_run(&bytes, Product<Right>::to_bytes, &product);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: gemm_lowp VERSION THREADS < sizes\n");
        return 2;
    }
    gemmlowp::GemmContext context;
    context.set_max_num_threads(atoi(argv[2]));
    int m, n, k;
    while (scanf("%d %d %d", &m, &n, &k) == 3) {
        measure<MapOrder::RowMajor>("gemmlowp_B_row_major", argv, m, n, k, &context);
        measure<MapOrder::ColMajor>("gemmlowp_B_col_major", argv, m, n, k, &context);
    }
}
