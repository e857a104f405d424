/* SPDX-License-Identifier: Apache-2.0 */
/* conv_pack.cu: space to depth for convolutions of few channels (conv.h), and a bias in
 * every row of a result.
 *
 * The 7x7 stem of stride 2 of a ResNet becomes a 4x4 one of stride 1 over 12 channels
 * and 4 zeros: 0.65 of the multiplications of 7x7 over 8 channels, and half of the
 * workspace that cuDNN's own padding to 8 channels takes. As conv0_space_to_depth of
 * TensorFlow's ResNet for TPUs. */
#include "kernels/cuda/conv.h"
#include "kernels/cuda/kernel.cuh"

namespace
{

enum { THREADS = 256, LANES = ETK_CONV_PACK };

/* Thread t writes channels LANES (t mod channels/LANES) .. of one place of x': reads of
 * neighbours lie beside each other. Bytes: x once through the caches, x' once. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    pack_x(etk_conv v, etk_conv_pack p, const T *x, etk_pack<T, LANES> *out,
           int64_t count)
{
    int64_t groups = p.channels / LANES, step = (int64_t)v.stride[1] * v.c;
    for (int64_t t = etk_thread(); t < count; t += etk_threads()) {
        int64_t first = t % groups * LANES, i = t / groups;
        int64_t j = i % p.size[1], n = i / p.size[1] / p.size[0];
        i = i / p.size[1] % p.size[0];
        etk_pack<T, LANES> to;
        for (int l = 0; l < LANES; l++) {
            int64_t a = (first + l) / step, b = (first + l) % step / v.c;
            int64_t c = (first + l) % v.c;
            int64_t h = i * v.stride[0] + a - v.pad[0],
                    w = j * v.stride[1] + b - v.pad[1];
            bool inside =
                a < v.stride[0] && h >= 0 && h < v.x[0] && w >= 0 && w < v.x[1];
            to.v[l] = inside ? x[n * v.sx[0] + c * v.sx[1] + h * v.sx[2] + w * v.sx[3]]
                             : etk_down<T>(0.f);
        }
        out[t] = to;
    }
}

/* Element t of w', or -1 where it is one of the zeros: its place in w. */
__device__ __forceinline__ int64_t
place_in_w(const etk_conv &v, const etk_conv_pack &p, int64_t t)
{
    int64_t step = (int64_t)v.stride[1] * v.c, c = t % p.channels, a = c / step;
    int64_t b = c % step / v.c, u = t / p.channels;
    int64_t col = u % p.taps[1] * v.stride[1] + b;
    int64_t row = u / p.taps[1] % p.taps[0] * v.stride[0] + a;
    int64_t k = u / p.taps[1] / p.taps[0];
    if (a >= v.stride[0] || row >= v.taps[0] || col >= v.taps[1])
        return -1;
    return k * v.sw[0] + c % v.c * v.sw[1] + row * v.sw[2] + col * v.sw[3];
}

/* Thread t writes element t of w'. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    pack_w(etk_conv v, etk_conv_pack p, const T *w, T *out, int64_t count)
{
    for (int64_t t = etk_thread(); t < count; t += etk_threads()) {
        int64_t at = place_in_w(v, p, t);
        out[t] = at < 0 ? etk_down<T>(0.f) : w[at];
    }
}

/* Thread t reads element t of the gradient of w'; every element of w has one place. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    unpack_w(etk_conv v, etk_conv_pack p, const T *packed, T *w, int64_t count)
{
    for (int64_t t = etk_thread(); t < count; t += etk_threads()) {
        int64_t at = place_in_w(v, p, t);
        if (at >= 0)
            w[at] = packed[t];
    }
}

/* Thread t writes elements V t .. of OUT; V divides CHANNELS. */
template <class T, int V>
__global__ void __launch_bounds__(THREADS)
    spread(const T *bias, int64_t stride, int64_t channels, etk_pack<T, V> *out,
           int64_t count)
{
    int64_t groups = channels / V;
    for (int64_t t = etk_thread(); t < count; t += etk_threads()) {
        int64_t first = t % groups * V;
        etk_pack<T, V> to;
        for (int l = 0; l < V; l++)
            to.v[l] = bias[(first + l) * stride];
        out[t] = to;
    }
}

template <class T>
cudaError_t
launch_x(const struct etk_conv *v, const void *x, void *out, cudaStream_t stream)
{
    struct etk_conv_pack p = etk_conv_pack_of(v);
    int64_t count = v->n * p.size[0] * p.size[1] * (p.channels / LANES);
    return etk_launch(pack_x<T>, etk_blocks(count, 1, THREADS, v->sm_count), THREADS, 0,
                      stream, *v, p, (const T *)x, (etk_pack<T, LANES> *)out, count);
}

/* KERNEL: pack_w or unpack_w. */
template <class T>
cudaError_t
launch_w(void (*kernel)(etk_conv, etk_conv_pack, const T *, T *, int64_t),
         const struct etk_conv *v, const void *from, void *to, cudaStream_t stream)
{
    struct etk_conv_pack p = etk_conv_pack_of(v);
    int64_t count = v->k * p.taps[0] * p.taps[1] * p.channels;
    return etk_launch(kernel, etk_blocks(count, 1, THREADS, v->sm_count), THREADS, 0,
                      stream, *v, p, (const T *)from, (T *)to, count);
}

template <class T>
cudaError_t
launch_pack_w(const struct etk_conv *v, const void *w, void *out, cudaStream_t stream)
{
    return launch_w<T>(pack_w<T>, v, w, out, stream);
}

template <class T>
cudaError_t
launch_unpack_w(const struct etk_conv *v, const void *packed, void *w,
                cudaStream_t stream)
{
    return launch_w<T>(unpack_w<T>, v, packed, w, stream);
}

template <class T, int V>
cudaError_t
spread_by(const struct etk_conv *v, int64_t rows, int64_t channels, const void *bias,
          void *out, cudaStream_t stream)
{
    int64_t count = rows * (channels / V);
    return etk_launch(spread<T, V>, etk_blocks(count, 1, THREADS, v->sm_count), THREADS,
                      0, stream, (const T *)bias, v->sb, channels,
                      (etk_pack<T, V> *)out, count);
}

template <class T>
cudaError_t
launch_bias(const struct etk_conv *v, int64_t rows, int64_t channels, const void *bias,
            void *out, cudaStream_t stream)
{
    enum { V = etk_lanes<T>::count };
    if (channels % V == 0 && (uintptr_t)out % 16 == 0)
        return spread_by<T, V>(v, rows, channels, bias, out, stream);
    return spread_by<T, 1>(v, rows, channels, bias, out, stream);
}

} // namespace

cudaError_t
etk_launch_conv_pack_x(const struct etk_conv *v, const void *x, void *out,
                       cudaStream_t stream)
{
    return ETK_FLOATS(v->dtype, launch_x, v, x, out, stream);
}

cudaError_t
etk_launch_conv_pack_w(const struct etk_conv *v, const void *w, void *out,
                       cudaStream_t stream)
{
    return ETK_FLOATS(v->dtype, launch_pack_w, v, w, out, stream);
}

cudaError_t
etk_launch_conv_unpack_w(const struct etk_conv *v, const void *packed, void *w,
                         cudaStream_t stream)
{
    return ETK_FLOATS(v->dtype, launch_unpack_w, v, packed, w, stream);
}

cudaError_t
etk_launch_conv_bias(const struct etk_conv *v, int64_t rows, int64_t channels,
                     const void *bias, void *out, cudaStream_t stream)
{
    return ETK_FLOATS(v->dtype, launch_bias, v, rows, channels, bias, out, stream);
}
