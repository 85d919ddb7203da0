"""Freezes the large models: VGG19, ResNet50, MobileNetV2, a layer of BERT-base, the attention of Keras and a multilayer
perceptron, with seeded random weights.

Usage: python freeze.py FOLDER    writes FOLDER/<model>.pb, runs with TensorFlow's results beside, and index.json

About 690 MB, the most of it VGG19. The small variants in frozen/ are made by `generate.py frozen`.
"""

import sys
from pathlib import Path

from gen import session  # noqa: F401  (sets TensorFlow's environment before TensorFlow is imported)


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__.strip())
    from gen.frozen import write

    print(f"{write(Path(arguments[0]), small=False)} models")


if __name__ == "__main__":
    main(sys.argv[1:])
