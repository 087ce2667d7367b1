//! Compresses contents.

use std::io::{self, Write as _};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;
use store::EncodedContent;

/// Maximum bytes for the best quality; above that, it takes too long.
const BEST: usize = 1 << 20;
/// Brotli quality: the best one, and the one for larger contents.
const QUALITY: (i32, i32) = (11, 9);
/// Maximum size of a compressed form, in percent of the content: smaller savings are not worth a cache entry.
const MAX_PERCENT: usize = 95;

/// Compresses content.
///
/// # Errors
/// None known: both formats are written to memory.
pub(super) fn compress(bytes: &[u8]) -> io::Result<EncodedContent> {
    let worth =
        |encoded: &Vec<u8>| encoded.len().saturating_mul(100) <= bytes.len().saturating_mul(MAX_PERCENT);
    Ok(EncodedContent { br: Some(br(bytes)?).filter(worth), gzip: Some(gzip(bytes)?).filter(worth) })
}

fn br(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let quality = if bytes.len() <= BEST { QUALITY.0 } else { QUALITY.1 };
    let parameters =
        BrotliEncoderParams { quality, size_hint: bytes.len(), ..BrotliEncoderParams::default() };
    let mut encoded = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut encoded, &parameters)?;
    Ok(encoded)
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn compressed_content_is_read_back() {
        let texts = ["body { color: red }\n".repeat(100), "x".repeat(2 * BEST)];
        for text in texts {
            let EncodedContent { br, gzip } = compress(text.as_bytes()).unwrap();
            let (br, gzip) = (br.unwrap(), gzip.unwrap());
            let mut read = Vec::new();
            brotli::BrotliDecompress(&mut br.as_slice(), &mut read).unwrap();
            assert!(read == text.as_bytes());
            let mut read = Vec::new();
            flate2::read::GzDecoder::new(gzip.as_slice()).read_to_end(&mut read).unwrap();
            assert!(read == text.as_bytes());
        }
    }

    #[test]
    fn a_small_saving_is_not_stored() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        let noise: Vec<u8> = (0..4_096).map(|_| random()).collect();
        assert_eq!(compress(&noise).unwrap(), EncodedContent::default());
    }

    #[test]
    fn a_saving_of_five_percent_is_enough() {
        // Incompressible noise, then enough zeros for savings between 5 % and 6 % of 1,999 bytes.
        let mut state = 7_u64;
        let mut bytes: Vec<u8> = (0..1_999)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        let noise = gzip(&bytes).unwrap().len();
        for zeros in 1..bytes.len() {
            bytes[1_999 - zeros..].fill(0);
            let length = gzip(&bytes).unwrap().len();
            let saves = length * 100 <= 1_999 * 95;
            assert_eq!(compress(&bytes).unwrap().gzip.is_some(), saves, "{length} of {noise}");
            if length * 100 < 1_999 * 93 {
                return;
            }
        }
        panic!("nothing was saved");
    }
}
