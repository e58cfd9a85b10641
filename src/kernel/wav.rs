//! Sound as a WAV file in memory.

use super::ports::Pcm;

/// Sound as a mono WAV file of 16-bit samples, for pages and players. What is louder than full scale
/// is clipped.
pub fn wav_bytes(pcm: &Pcm) -> Vec<u8> {
    const HEADER: u32 = 44;
    const BYTES_PER_SAMPLE: u32 = 2;
    // A WAV file can't hold more than 4 GiB; a day of speech is not a segment.
    let room = ((u32::MAX - HEADER) / BYTES_PER_SAMPLE) as usize;
    let samples = pcm.samples.get(..room).unwrap_or(&pcm.samples);
    let data = samples.len() as u32 * BYTES_PER_SAMPLE;
    let mut wav = Vec::with_capacity((HEADER + data) as usize);
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&(HEADER - 8 + data).to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt ");
    wav.extend_from_slice(&16_u32.to_le_bytes());
    wav.extend_from_slice(&1_u16.to_le_bytes());
    wav.extend_from_slice(&1_u16.to_le_bytes());
    wav.extend_from_slice(&pcm.rate.to_le_bytes());
    wav.extend_from_slice(&pcm.rate.saturating_mul(BYTES_PER_SAMPLE).to_le_bytes());
    wav.extend_from_slice(&(BYTES_PER_SAMPLE as u16).to_le_bytes());
    wav.extend_from_slice(&16_u16.to_le_bytes());
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&data.to_le_bytes());
    wav.extend(samples.iter().flat_map(|sample| to_s16(*sample).to_le_bytes()));
    wav
}

/// A sample of −1 to 1 as 16 bits; what is louder is clipped.
pub fn to_s16(sample: f32) -> i16 {
    (sample * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wav_reader_finds_the_same_sound() {
        let pcm = Pcm { rate: 22_050, samples: vec![0.0, 0.5, -0.5, 1.5, -1.5, -1.0] };
        let mut reader = hound::WavReader::new(std::io::Cursor::new(wav_bytes(&pcm))).unwrap();
        let spec = reader.spec();
        assert_eq!((spec.sample_rate, spec.channels, spec.bits_per_sample), (22_050, 1, 16));
        let samples: Vec<i16> = reader.samples().map(Result::unwrap).collect();
        assert_eq!(samples, [0, 16_384, -16_384, 32_767, -32_768, -32_768]);
    }

    #[test]
    fn silence_of_no_length_is_a_valid_file() {
        let wav = wav_bytes(&Pcm { rate: 16_000, samples: Vec::new() });
        assert_eq!(wav.len(), 44);
        assert_eq!(hound::WavReader::new(std::io::Cursor::new(wav)).unwrap().len(), 0);
    }
}
