"""Packs direction numbers for Sobol's sequence: sobol.py new-joe-kuo-6.21201 sobol.bin

The numbers are those of S. Joe and F. Kuo (https://web.maths.unsw.edu.au/~fkuo/sobol/, licence in sobol.LICENSE). Per
dimension from the second on they are a stream of bits, the lowest first: 5 bits for the degree s, s - 1 for the
coefficients a, and for m_i, which is odd and below 2^i, the i - 1 bits above the lowest one.
"""

import sys

DIMENSIONS = 21200  # As many as TensorFlow takes.


def bits(text):
    rows = [[int(word) for word in line.split()] for line in text.splitlines()[1:DIMENSIONS]]
    for _, degree, coefficients, *numbers in rows:
        fields = [(degree, 5), (coefficients, degree - 1), *((m >> 1, i) for i, m in enumerate(numbers))]
        for value, width in fields:
            yield from (value >> at & 1 for at in range(width))


stream = list(bits(open(sys.argv[1]).read()))
stream += [0] * (-len(stream) % 8)
packed = (sum(bit << at for at, bit in enumerate(stream[i : i + 8])) for i in range(0, len(stream), 8))
open(sys.argv[2], "wb").write(bytes(packed))
