use super::*;

const RATE: u32 = 1000;

struct Rig {
    deck: Deck,
    feed: Feed,
    controls: Arc<Controls>,
}

impl Rig {
    fn new() -> Self {
        let controls = Arc::<Controls>::default();
        let (deck, feed) = deck(RATE, Arc::clone(&controls), None, None, Duration::ZERO);
        Self { deck, feed, controls }
    }

    fn load(&mut self, epoch: u64, serial: u32, samples: usize, first: bool, last: bool) {
        let chunk = Chunk { epoch, serial, samples: vec![1.0; samples], first, last };
        self.feed.chunks.try_push(chunk).unwrap();
    }

    fn play(&mut self, samples: usize) -> Vec<f32> {
        let mut block = vec![9.0; samples];
        self.deck.fill(&mut block);
        self.feed.free();
        block
    }

    fn reports(&mut self) -> Vec<Report> {
        self.feed.reports.pop_iter().collect()
    }
}

#[test]
fn segments_follow_each_other_sample_by_sample() {
    let mut rig = Rig::new();
    rig.load(0, 7, 20, true, false);
    rig.load(0, 7, 10, false, true);
    rig.load(0, 8, 5, true, true);
    assert_eq!(rig.play(25), vec![1.0; 25]);
    assert_eq!(rig.controls.position(), (7, 25));
    assert_eq!(rig.reports(), [Report::Started(7)]);
    let block = rig.play(20);
    assert_eq!(block[..10], [1.0; 10]);
    assert_eq!(block[10..], [0.0; 10]);
    assert_eq!(rig.controls.position(), (8, 5));
    assert_eq!(rig.reports(), [Report::Finished(7), Report::Started(8), Report::Finished(8)]);
    assert_eq!(rig.deck.remaining(), 0);
    assert_eq!(rig.controls.blocks(), 2);
}

#[test]
fn a_stop_fades_in_ten_milliseconds_and_drops_what_waits() {
    let mut rig = Rig::new();
    rig.load(0, 1, 50, true, false);
    rig.load(0, 1, 50, false, true);
    rig.load(0, 2, 50, true, true);
    rig.play(20);
    assert_eq!(rig.controls.stop(), 1);
    let block = rig.play(30);
    assert!(block.windows(2).all(|pair| pair[0] >= pair[1]), "{block:?}");
    assert!(block[0] > 0.85 && block[4] > 0.3 && block[10..].iter().all(|s| *s == 0.0));
    assert_eq!(rig.reports(), [Report::Started(1)], "nothing of what was dropped is reported");
    // What is handed over next plays at once and at full loudness.
    rig.load(1, 3, 4, true, true);
    assert_eq!(rig.play(5), [1.0, 1.0, 1.0, 1.0, 0.0]);
    assert_eq!(rig.reports(), [Report::Started(3), Report::Finished(3)]);
}

#[test]
fn a_fade_goes_on_into_the_next_chunk_of_its_segment() {
    // The stop falls before, and exactly at, the border of two chunks.
    for first in [23, 20] {
        let mut rig = Rig::new();
        rig.load(0, 1, first, true, false);
        rig.load(0, 1, 50, false, true);
        rig.load(0, 2, 50, true, true);
        rig.play(20);
        rig.controls.stop();
        let block = rig.play(20);
        assert!(block[0] > 0.85 && block[8] > 0.05, "{block:?}");
        assert!(block.windows(2).all(|pair| pair[0] - pair[1] < 0.11), "no click: {block:?}");
        assert!(block[10..].iter().all(|s| *s == 0.0), "{block:?}");
        assert_eq!(rig.reports(), [Report::Started(1)]);
        assert_eq!(rig.deck.remaining(), 0);
    }
}

#[test]
fn a_stop_at_the_very_end_of_a_segment_is_silent_after_it() {
    let mut rig = Rig::new();
    rig.load(0, 1, 23, true, true);
    rig.load(0, 2, 50, true, true);
    rig.play(20);
    rig.controls.stop();
    rig.load(1, 3, 2, true, true);
    let block = rig.play(10);
    assert!(block[..3].iter().all(|s| *s < 1.0));
    assert_eq!(block[3..5], [1.0; 2], "the next epoch follows");
    assert_eq!(block[5..], [0.0; 5]);
    assert_eq!(rig.reports(), [Report::Started(1), Report::Started(3), Report::Finished(3)]);
}

#[test]
fn ducking_falls_in_ten_and_rises_in_a_hundred_milliseconds() {
    let mut rig = Rig::new();
    rig.load(0, 1, 500, true, true);
    rig.play(10);
    rig.controls.set_ducked(true);
    let block = rig.play(20);
    let decibels = |sample: f32| 20.0 * sample.log10();
    assert!((decibels(block[10]) + 18.0).abs() < 0.01, "{}", decibels(block[10]));
    assert!((decibels(block[19]) + 18.0).abs() < 0.01);
    assert!(block.windows(2).all(|pair| pair[0] - pair[1] < 0.11), "no click");
    rig.controls.set_ducked(false);
    let block = rig.play(110);
    assert!(block[50] < 0.8, "it rises slowly");
    assert_eq!(block[100], 1.0);
}

#[test]
fn volume_is_bounded_and_ramped() {
    let mut rig = Rig::new();
    rig.load(0, 1, 500, true, true);
    rig.controls.set_volume(0.5);
    let block = rig.play(20);
    assert!(block[0] > 0.8);
    assert_eq!(block[19], 0.5);
    for (set, meant) in [(7.0, 1.0), (-1.0, 0.0), (f32::NAN, 0.0)] {
        rig.controls.set_volume(set);
        assert_eq!(*rig.play(120).last().unwrap(), meant);
    }
}

#[test]
fn a_late_chunk_leaves_a_gap_and_not_a_wrong_position() {
    let mut rig = Rig::new();
    rig.load(0, 1, 10, true, false);
    assert_eq!(rig.play(15)[10..], [0.0; 5]);
    rig.load(0, 1, 10, false, true);
    rig.play(15);
    assert_eq!(rig.controls.position(), (1, 20));
    assert_eq!(rig.reports(), [Report::Started(1), Report::Finished(1)]);
}

#[test]
fn every_sample_buffer_comes_back_to_be_freed() {
    let mut rig = Rig::new();
    for serial in 0..200 {
        rig.load(0, serial, 3, true, true);
        let mut block = [0.0; 3];
        rig.deck.fill(&mut block);
        rig.feed.free();
    }
    assert_eq!(rig.reports().len(), 400);
    for _ in 0..CHUNKS {
        rig.load(0, 1, 3, true, false);
    }
    rig.controls.stop();
    rig.play(3);
    assert_eq!(rig.deck.remaining(), 0);
}
