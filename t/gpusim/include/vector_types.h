/* SPDX-License-Identifier: Apache-2.0 */
/* vector_types.h: CUDA's short vectors and dim3. Vectors of 8 and 16 bytes are as
 * strictly aligned as the GPU wants them, so that -fsanitize=alignment finds what would
 * fault. */
#ifndef ETUDE_GPUSIM_VECTOR_TYPES_H
#define ETUDE_GPUSIM_VECTOR_TYPES_H

/* GPUSIM_VECTOR(n, name of the element, element, alignment) */
#define GPUSIM_VECTORS(NAME, T, A2, A4)                                                \
    struct NAME##1                                                                     \
    {                                                                                  \
        T x;                                                                           \
    };                                                                                 \
    struct alignas(A2) NAME##2                                                         \
    {                                                                                  \
        T x, y;                                                                        \
    };                                                                                 \
    struct NAME##3                                                                     \
    {                                                                                  \
        T x, y, z;                                                                     \
    };                                                                                 \
    struct alignas(A4) NAME##4                                                         \
    {                                                                                  \
        T x, y, z, w;                                                                  \
    };                                                                                 \
    inline NAME##1 make_##NAME##1(T x)                                                 \
    {                                                                                  \
        return {x};                                                                    \
    }                                                                                  \
    inline NAME##2 make_##NAME##2(T x, T y)                                            \
    {                                                                                  \
        return {x, y};                                                                 \
    }                                                                                  \
    inline NAME##3 make_##NAME##3(T x, T y, T z)                                       \
    {                                                                                  \
        return {x, y, z};                                                              \
    }                                                                                  \
    inline NAME##4 make_##NAME##4(T x, T y, T z, T w)                                  \
    {                                                                                  \
        return {x, y, z, w};                                                           \
    }

GPUSIM_VECTORS(char, signed char, 2, 4)
GPUSIM_VECTORS(uchar, unsigned char, 2, 4)
GPUSIM_VECTORS(short, short, 4, 8)
GPUSIM_VECTORS(ushort, unsigned short, 4, 8)
GPUSIM_VECTORS(int, int, 8, 16)
GPUSIM_VECTORS(uint, unsigned, 8, 16)
GPUSIM_VECTORS(longlong, long long, 16, 16)
GPUSIM_VECTORS(ulonglong, unsigned long long, 16, 16)
GPUSIM_VECTORS(float, float, 8, 16)
GPUSIM_VECTORS(double, double, 16, 16)
#undef GPUSIM_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
        : x(x_), y(y_), z(z_)
    {
    }
};

#endif
