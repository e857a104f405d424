# SPDX-License-Identifier: Apache-2.0
"""The draws of methods, as src/core/base/rng.c and eti_draws make them: what a script here
gives to MosaicML Composer in the place of its own, so that both train on the same ones."""
import math

import numpy

MASK = 0xFFFFFFFF
AUGMENT, DROPOUT, MIX, SELECT = 2, 3, 4, 5  # enum et_rng_stream


def philox(key, high, low):
    k0, k1 = key & MASK, key >> 32
    c0, c1, c2, c3 = low & MASK, low >> 32, high & MASK, high >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & MASK, p0 >> 32 ^ c3 ^ k1, p0 & MASK
        k0, k1 = k0 + 0x9E3779B9 & MASK, k1 + 0xBB67AE85 & MASK
    return [c0, c1, c2, c3]


class Draws:
    """Those of METHOD's PART at sample INDEX."""

    def __init__(self, seed, stream, index, method, part=0):
        h = 2166136261
        for byte in method.encode():
            h = (h ^ byte) * 16777619 & MASK
        self.key, self.index = stream << 32 | seed, index
        self.ordinal, self.words = h << 32 | part << 28, []

    def u32(self):
        if not self.words:
            self.words = philox(self.key, self.index, self.ordinal)
            self.ordinal += 1
        return self.words.pop(0)

    def u64(self):
        low = self.u32()
        return low | self.u32() << 32

    def uniform(self):
        return (self.u64() >> 11) * 2.0**-53

    def uniform_f32(self):
        return (self.u32() >> 8) * 2.0**-24

    def normal(self):
        u = 1 - self.uniform()
        return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * self.uniform())

    def below(self, n):
        most = 2**64 - 1
        limit = most - most % n
        x = self.u64()
        while x >= limit:
            x = self.u64()
        return x % n

    def log_gamma(self, shape):
        boost = 0
        if shape < 1:
            boost = math.log(1 - self.uniform()) / shape
            shape += 1
        d = shape - 1 / 3
        c = 1 / math.sqrt(9 * d)
        while True:
            x = self.normal()
            v = 1 + c * x
            if v <= 0:
                continue
            v **= 3
            u = 1 - self.uniform()
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return math.log(d * v) + boost

    def beta(self, a, b):
        x = self.log_gamma(a)
        return 1 / (1 + math.exp(self.log_gamma(b) - x))

    def dirichlet(self, alpha, n):
        v = numpy.array([self.log_gamma(alpha) for _ in range(n)])
        v = numpy.exp(v - v.max())
        return v / v.sum()

    def permutation(self, n):
        out = [0] * n
        for i in range(n):
            j = self.below(i + 1)
            out[i] = out[j]
            out[j] = i
        return out

    def choice(self, n, size, weight):
        """SIZE of N without repetition, as numpy.random.choice draws them."""
        weight, found = list(weight), []
        while len(found) < size:
            sums = numpy.cumsum(weight)
            new = []
            for _ in range(size - len(found)):
                at = int(numpy.searchsorted(sums, self.uniform() * sums[-1], "right"))
                if at not in new:
                    new.append(at)
            for at in new:
                weight[at] = 0
            found += new
        return numpy.array(found)

    def numpy(self):
        """What to put in the place of functions of numpy.random."""

        def uniform(low=0.0, high=1.0):
            return low + (high - low) * self.uniform()

        return {"uniform": uniform, "random": uniform, "beta": self.beta,
                "dirichlet": lambda alpha: self.dirichlet(alpha[0], len(alpha)),
                "randint": lambda low, high: low + self.below(high - low),
                "choice": lambda v: v[self.below(len(v))]}


class Words(Draws):
    """Those of dropout's stream at INDEX that are named by four letters and PART, as
    core/modules/gyro_dropout.c has them."""

    def __init__(self, seed, name, index, part):
        super().__init__(seed, DROPOUT, index, "")
        self.ordinal = int.from_bytes(name.encode(), "big") << 32 | part << 31


class Sample(Draws):
    """Those of the sample INDEX in the ORDINAL-th random operation of a pass."""

    def __init__(self, seed, index, ordinal):
        super().__init__(seed, DROPOUT, index, "")
        self.ordinal = ordinal << 32
