//! The bitmap codec (R10), the encoding hints (R59, D12), and the hash, held still.

use proptest::prelude::*;

use super::*;

#[test]
fn r10_bitmap_examples() {
    let map = Bitmap::of([0, 1, 2, 4, 5, 7]).unwrap();
    assert_eq!(map.to_base64(), "tw==");
    assert_eq!(Bitmap::from_base64("tw=="), Ok(map));
    assert_eq!(Bitmap::of([]).unwrap().to_base64(), "");
    assert_eq!(Bitmap::of([8, 23]).unwrap().to_base64(), "AAGA");
    // Zero bytes at the end don't make another set.
    assert_eq!(Bitmap::from_base64("twAA"), Bitmap::from_base64("tw=="));
}

#[test]
fn r10_bitmap_refuses_what_is_none() {
    assert_eq!(Bitmap::from_base64("abc"), Err(BitmapError::Length { length: 3 }));
    assert_eq!(Bitmap::from_base64("t$=="), Err(BitmapError::Character { character: '$', at: 1 }));
    assert_eq!(Bitmap::from_base64("t==="), Err(BitmapError::Character { character: '=', at: 1 }));
    assert_eq!(Bitmap::from_base64("tx=="), Err(BitmapError::LooseBits));
    assert_eq!(Bitmap::of([1 << 20]), Err(BitmapError::TooLarge { offset: 1 << 20 }));
    assert!(Bitmap::of([(1 << 20) - 1]).is_ok());
}

proptest! {
    /// R10: list → bitmap → list is the identity; lookups agree.
    #[test]
    fn r10_bitmap_is_the_identity(offsets in prop::collection::btree_set(0_u128..5000, 0..200), probe in 0_u128..6000) {
        let map = Bitmap::of(offsets.iter().copied()).unwrap();
        let back = Bitmap::from_base64(&map.to_base64()).unwrap();
        prop_assert_eq!(&back.offsets(), &offsets);
        prop_assert_eq!(back.contains(probe), offsets.contains(&probe));
        prop_assert_eq!(back, map);
    }

    #[test]
    fn r10_any_text_is_read_or_refused(text in ".{0,40}") {
        if let Ok(map) = Bitmap::from_base64(&text) {
            prop_assert_eq!(Bitmap::from_base64(&map.to_base64()), Ok(map));
        }
    }
}

/// R59: hints are annotations; ours are known, none is fine, anything else stops the pool and says so.
#[test]
fn r59_unknown_encodings_stop_the_pool() {
    assert_eq!(check_encoding(&BTreeMap::new()), Ok(()));
    assert_eq!(check_encoding(&hints()), Ok(()));
    assert_eq!(
        (SCHEMA_VERSION, LEDGER_ENCODING),
        ("nmstate.io/schema-version", "nmstate.io/ledger-encoding")
    );
    let other = labels(&[("nmstate.io/ledger-encoding", "zstd"), ("unrelated", "x")]);
    let error = check_encoding(&other).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(r#"nmstate.io/ledger-encoding is "zstd", this version knows "allocations""#)
    );
    assert!(check_encoding(&labels(&[(SCHEMA_VERSION, "2")])).is_err());
    // A slice may have its ledger in its spec; who doesn't know of that leaves it alone.
    let made_with = labels(&[(LEDGER_ENCODING, MADE_WITH)]);
    assert_eq!(check_slice_encoding(&made_with), Ok(()));
    assert_eq!(check_slice_encoding(&hints()), Ok(()));
    assert!(check_encoding(&made_with).is_err() && check_slice_encoding(&other).is_err());
}

/// The hash never changes: these values are a promise to running clusters.
#[test]
fn r53_the_hash_stands_still() {
    let golden = [
        (("node01", "traffic-1", "address-from-traffic-1"), 0xfbd1_4ff3_10da_4260_b6ad_3000_d15d_9ae1),
        (("node02", "traffic-1", "address-from-traffic-1"), 0x1601_9afb_89f1_a9e7_8842_1bec_6658_0dc1),
        (("node01", "traffic-2", "address-from-traffic-1"), 0xbd97_75d7_cf69_2cdf_de10_c2e7_e26f_325b),
        (("", "", ""), 0xe9c9_2c69_a98c_c472_88be_fec3_e71d_8b5f),
        (("a", "b", "c"), 0x54b1_bd9e_c33b_5478_7bfd_57af_8c65_d021),
        (("ab", "", "c"), 0xabde_35bd_2559_355e_5672_bac9_9140_e42b),
    ];
    let got =
        golden.map(|((node, pool, capture), _)| ((node, pool, capture), hash::start(node, pool, capture)));
    assert_eq!(got, golden, "{got:#x?}");
}

/// Spread like random: a thousand names fall into 64 buckets about evenly, by high and by low bits.
#[test]
fn r53_the_hash_spreads() {
    for shift in [0, 32, 64, 96, 122] {
        let mut buckets = [0_u32; 64];
        for i in 0..6400 {
            let hash = hash::start(&format!("worker-{i}"), "traffic-1", "address");
            buckets[((hash >> shift) % 64) as usize] += 1;
        }
        let (low, high) = (buckets.iter().min().unwrap(), buckets.iter().max().unwrap());
        assert!((55..=145).contains(low) && (55..=145).contains(high), "shift {shift}: {low} to {high}");
    }
}
