//! Images that declare or unpack more than a worker may hold, and images with random damage.

use std::time::Duration;

use sandbox::{DocumentProblem, ImageKind, ImageLimits, Options, Sandbox, SandboxError};

use crate::images::{KINDS, encoded, flag, is_damaged, is_too_large, limits, photo, random, read};
use crate::{binary, sandbox};

/// At least this many zeros in zlib format: a literal, then 13-bit matches with length 258 and distance 1.
fn packed_zeros(count: usize) -> Vec<u8> {
    let matches = count.div_ceil(258);
    let begin = "110".chars().chain("00110000".chars());
    let bits = begin.chain("1100010100000".chars().cycle().take(matches * 13)).chain("0000000".chars());
    let mut packed = vec![0x78, 0x9c];
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            packed.push(0);
        }
        if bit == '1' {
            *packed.last_mut().unwrap() |= 1 << (at % 8);
        }
    }
    let sum = u32::try_from((matches * 258 + 1) % 65521).unwrap() << 16 | 1;
    packed.extend(sum.to_be_bytes());
    packed
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ (0xedb8_8320 * (sum & 1)))
    })
}

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let named = [&name[..], body].concat();
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), &named[..], &crc(&named).to_be_bytes()].concat()
}

/// A PNG with 8 or 16 bits per channel and these chunks after its header.
fn png(width: u32, height: u32, colour: [u8; 2], chunks: &[Vec<u8>]) -> Vec<u8> {
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let header = chunk(b"IHDR", &[&size[..], &colour, &[0; 3]].concat());
    [b"\x89PNG\r\n\x1a\n", &header[..], &chunks.concat(), &chunk(b"IEND", &[])].concat()
}

const RGB: [u8; 2] = [8, 2];
const RGBA16: [u8; 2] = [16, 6];

#[tokio::test]
async fn an_image_with_too_many_pixels_is_rejected_by_its_header() {
    let sandbox = sandbox(1);
    let idat = chunk(b"IDAT", &packed_zeros(1 << 20));
    for (width, height) in [(60_000, 60_000), (40_000_001, 1), (1, 40_000_001), (6_326, 6_326)] {
        for colour in [RGB, RGBA16] {
            let bytes = png(width, height, colour, std::slice::from_ref(&idat));
            let result = read(&sandbox, ImageKind::Png, &bytes, limits()).await;
            assert!(is_too_large(&result), "{width} x {height}: {result:?}");
        }
    }
    let wide = png(0x7fff_ffff, 0x7fff_ffff, RGBA16, &[idat]);
    assert!(is_too_large(&read(&sandbox, ImageKind::Png, &wide, limits()).await));
    let gif = b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x44\x01\0;";
    assert!(is_too_large(&read(&sandbox, ImageKind::Gif, gif, limits()).await));
    let mut jpeg = encoded(ImageKind::Jpeg, &flag(16, 16));
    let frame = jpeg.windows(2).position(|part| part == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].fill(0xff);
    assert!(is_too_large(&read(&sandbox, ImageKind::Jpeg, &jpeg, limits()).await));
    let mut webp = encoded(ImageKind::Webp, &flag(16, 16));
    // 14 bits per side, less one.
    webp[21..25].copy_from_slice(&(0x3ffe_u32 | 0x3ffe << 14).to_le_bytes());
    let result = read(&sandbox, ImageKind::Webp, &webp, limits()).await;
    assert!(is_too_large(&result), "{result:?}");
    let few = ImageLimits { pixels: 255, ..limits() };
    for kind in KINDS {
        let result = read(&sandbox, kind, &encoded(kind, &flag(16, 16)), few).await;
        assert!(is_too_large(&result), "{kind:?}: {result:?}");
    }
    let workers = sandbox.idle();
    assert_eq!(workers.len(), 1);
    assert!(read(&sandbox, ImageKind::Png, &encoded(ImageKind::Png, &flag(9, 9)), limits()).await.is_ok());
    assert_eq!(sandbox.idle(), workers, "no worker was lost");
}

#[tokio::test]
async fn an_image_without_pixels_is_damaged() {
    let sandbox = sandbox(1);
    let idat = chunk(b"IDAT", &packed_zeros(64));
    for (width, height) in [(0, 0), (0, 5), (5, 0)] {
        let bytes = png(width, height, RGB, std::slice::from_ref(&idat));
        assert!(is_damaged(&read(&sandbox, ImageKind::Png, &bytes, limits()).await));
    }
    let gif = b"GIF89a\0\0\0\0\0\0\0,\0\0\0\0\0\0\0\0\0\x02\x02\x44\x01\0;";
    assert!(is_damaged(&read(&sandbox, ImageKind::Gif, gif, limits()).await));
    assert!(is_damaged(&read(&sandbox, ImageKind::Png, &png(5, 5, RGB, &[]), limits()).await));
    let mut jpeg = encoded(ImageKind::Jpeg, &flag(16, 16));
    let frame = jpeg.windows(2).position(|part| part == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].fill(0);
    assert!(is_damaged(&read(&sandbox, ImageKind::Jpeg, &jpeg, limits()).await));
}

#[tokio::test]
async fn data_beyond_the_pixels_uses_no_memory() {
    let sandbox = Sandbox::new(Options { memory: 1 << 20, ..Options::new(binary()) });
    let small = ImageLimits { pixels: 1000, ..limits() };
    let zeros = packed_zeros(96 << 20);
    assert!(zeros.len() < 1 << 20);
    let rows = chunk(b"IDAT", &packed_zeros(31 * 10));
    let after = png(10, 10, RGB, &[chunk(b"IDAT", &zeros)]);
    let result = read(&sandbox, ImageKind::Png, &after, small).await;
    assert_eq!(
        result.map(|facts| facts.colour),
        Ok("black".into()),
        "bytes after the last row are not unpacked"
    );
    for name in [b"iCCP", b"zTXt"] {
        let metadata = chunk(name, &[b"a\0\0", &zeros[..]].concat());
        let result =
            read(&sandbox, ImageKind::Png, &png(10, 10, RGB, &[metadata, rows.clone()]), small).await;
        assert_eq!(result.map(|facts| facts.colour), Ok("black".into()), "metadata is not unpacked");
    }
}

#[tokio::test]
async fn image_memory_depends_on_pixels_and_image_time_is_limited() {
    // Code calls may use much less memory than these pixels.
    let sandbox = Sandbox::new(Options { memory: 1 << 20, ..Options::new(binary()) });
    let rows = chunk(b"IDAT", &packed_zeros(1 << 21));
    let cut = png(6324, 6324, RGBA16, std::slice::from_ref(&rows));
    let result = sandbox.read_image(ImageKind::Png, base64(&cut), limits()).await;
    assert!(
        matches!(result, Ok(Err(DocumentProblem::Damaged(_)))),
        "the memory limit does not end it: {result:?}"
    );
    let whole = base64(&png(1000, 500, RGB, &[rows]));
    let quick = ImageLimits { time: Duration::from_millis(1), ..limits() };
    let slow = sandbox.read_image(ImageKind::Png, whole.clone(), quick).await;
    assert!(matches!(slow, Err(SandboxError::Timeout(_))), "{slow:?}");
    let next = sandbox.read_image(ImageKind::Png, whole, limits()).await.unwrap();
    assert_eq!(next.map(|facts| facts.colour), Ok("black".into()), "the next image finds a worker");
}

#[tokio::test]
async fn random_damage_never_ends_the_worker() {
    let sandbox = sandbox(1);
    let mut draw = random();
    let image = flag(24, 16);
    for round in 0..400 {
        let kind = KINDS[round % 4];
        let mut bytes = if kind == ImageKind::Jpeg { photo(&image, 6) } else { encoded(kind, &image) };
        let length = bytes.len();
        if round % 8 < 2 {
            bytes.truncate(draw(length));
        } else {
            (0..=draw(8)).for_each(|_| bytes[draw(length)] = u8::try_from(draw(256)).unwrap());
        }
        let result = sandbox.read_image(kind, base64(&bytes), limits()).await;
        assert!(result.is_ok(), "round {round}: {result:?}");
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
