"""Sound: WAV files, spectrograms and cepstra."""

import struct

import numpy as np

from .data import seeded
from .suite import Suite

CLOSE = {"tolerance": {"absolute": 2e-4, "relative": 1e-4}, "reason": "transforms and logarithms in another order"}


def wav(samples, rate=8000, *, bits=16, coding=1, extra=b"", before=b"", after=b"", **wrong):
    """A file of these 16-bit levels, an array of shape [samples, channels]."""
    channels = wrong.get("channels", samples.shape[1])
    each = wrong.get("each", channels * bits // 8)
    data = samples.astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", coding, channels, rate, wrong.get("second", each * rate), each, bits) + extra
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + before
    chunks += b"data" + struct.pack("<I", wrong.get("size", len(data))) + data + after
    return np.array(b"RIFF" + struct.pack("<I", len(chunks)) + chunks)


def levels(samples, channels):
    return seeded("wav", samples, channels).integers(-32768, 32768, (samples, channels))


def files(folder):
    """DecodeWav and EncodeWav."""
    suite = Suite(folder, "speech", "DecodeWav")
    for samples, channels in ((5, 1), (7, 2), (1, 1), (3, 3)):
        file = wav(levels(samples, channels), after=b"LIST\2\0\0\0xy")
        suite.case(f"{samples}_{channels}", [file])
        suite.case(f"{samples}_{channels}_cut", [file], {"desired_samples": 4, "desired_channels": 2})
    suite.case("long_format", [wav(levels(4, 1), 44100, extra=b"\1\1")])
    suite.case("another_chunk", [wav(levels(4, 1), before=b"junk\3\0\0\0abc")])
    one = levels(4, 1)
    for name, wrong in {"coding": {"coding": 3}, "no_channels": {"channels": 0}, "each": {"each": 3}, "second": {"second": 7}, "size": {"size": 100}, "bits": {"bits": 8}}.items():
        suite.error(name, [wav(one, **wrong)])
    whole = bytes(wav(one)[()])
    suite.error("tag", [np.array(b"RIFX" + whole[4:])])
    suite.error("short", [np.array(whole[:30])])
    suite.error("empty", [np.array(b"")])
    suite.error("vector", [np.array([whole])])
    yield suite.finish()
    suite = Suite(folder, "speech", "EncodeWav")
    for samples, channels in ((5, 1), (7, 2), (1, 3)):
        x = np.float32(seeded("encode", samples, channels).uniform(-1.2, 1.2, (samples, channels)))
        # No file ends in zero bytes, which the archive would lose.
        x[-1, -1] = 0.75
        suite.case(f"{samples}_{channels}", [x, np.int32(16000)], const=[1])
    suite.error("vector", [np.ones(3, np.float32), np.int32(16000)], const=[1])
    suite.error("rates", [np.ones((3, 1), np.float32), np.int32([16000])], const=[1])
    suite.error("rate", [np.ones((3, 1), np.float32), np.int32(0)], const=[1])
    yield suite.finish()


def tone(samples, channels):
    time = np.arange(samples)[:, None] / 8000
    noise = seeded("tone", samples, channels).standard_normal((samples, channels)) * 0.1
    return np.float32(np.sin(2 * np.pi * time * (500 + 700 * np.arange(channels))) * 0.5 + noise)


def spectra(folder):
    """AudioSpectrogram and Mfcc."""
    suite = Suite(folder, "speech", "AudioSpectrogram")
    for samples, channels, window, stride in ((100, 1, 32, 16), (90, 2, 25, 10), (40, 1, 40, 7), (10, 1, 16, 4)):
        for squared in (False, True):
            attrs = {"window_size": window, "stride": stride, "magnitude_squared": squared}
            suite.case(f"{samples}_{channels}_{window}_{squared}", [tone(samples, channels)], attrs, **dict(CLOSE))
    suite.error("window", [tone(9, 1)], {"window_size": 1, "stride": 1})
    suite.error("stride", [tone(9, 1)], {"window_size": 4, "stride": 0})
    suite.error("vector", [tone(9, 1)[:, 0]], {"window_size": 4, "stride": 2})
    yield suite.finish()
    suite = Suite(folder, "speech", "Mfcc")
    for channels, frames, bins, rate in ((1, 3, 65, 8000), (2, 2, 129, 16000), (1, 1, 257, 22050)):
        x = np.float32(np.square(seeded("mfcc", channels, bins).standard_normal((channels, frames, bins))))
        for name, attrs in {"plain": {}, "few": {"filterbank_channel_count": 10, "dct_coefficient_count": 5, "upper_frequency_limit": 3000.0}}.items():
            suite.case(f"{channels}_{bins}_{name}", [x, np.int32(rate)], attrs | ({"upper_frequency_limit": 3900.0} if name == "plain" else {}), const=[1], **dict(CLOSE))
    suite.case("silence", [np.zeros((1, 2, 65), np.float32), np.int32(16000)], const=[1], **dict(CLOSE))
    x = np.ones((1, 2, 65), np.float32)
    suite.error("rank", [x[0], np.int32(16000)], const=[1])
    suite.error("rates", [x, np.int32([16000])], const=[1])
    suite.error("coefficients", [x, np.int32(16000)], {"dct_coefficient_count": 50}, const=[1])
    suite.error("limits", [x, np.int32(16000)], {"lower_frequency_limit": 5000.0}, const=[1])
    suite.error("one_bin", [x[:, :, :1], np.int32(16000)], const=[1])
    yield suite.finish()


GROUPS = [files, spectra]
