use super::*;

#[test]
fn samples_survive_any_cut() {
    let sent: Vec<i16> = vec![0, 1, -1, 256, i16::MIN, i16::MAX, 12_345];
    let bytes: Vec<u8> = sent.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    for size in 1..=bytes.len() {
        let mut samples = Samples::default();
        let got: Vec<i16> =
            bytes.chunks(size).flat_map(|part| samples.take(part).to_vec()).collect();
        assert_eq!(got, sent, "frames of {size} bytes");
    }
}

#[test]
fn close_reasons_are_cut_at_a_character() {
    let cut = short("\u{e9}".repeat(100));
    assert_eq!(cut.len(), 122);
    assert_eq!(short("brief".into()), "brief");
}
