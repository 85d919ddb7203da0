//! Sound: files of samples (`wav`), the strength of frequencies over time (`spectrogram`), and what of it speech
//! recognition uses (`mfcc`).

mod mfcc;
mod spectrogram;
mod wav;
