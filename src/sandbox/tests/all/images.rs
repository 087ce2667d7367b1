//! Images: facts and previews, and the problems of damaged and hostile ones.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::gif::GifEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{
    DynamicImage, Frame, GenericImageView as _, ImageEncoder, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage,
};
use sandbox::{DocumentProblem, ImageFacts, ImageKind, ImageLimits, Sandbox};

use crate::sandbox;

pub(crate) const KINDS: [ImageKind; 4] = [ImageKind::Png, ImageKind::Jpeg, ImageKind::Gif, ImageKind::Webp];

const RED: Rgb<u8> = Rgb([230, 20, 20]);
const BLUE: Rgb<u8> = Rgb([20, 20, 230]);

pub(crate) fn limits() -> ImageLimits {
    ImageLimits { time: Duration::from_secs(60), ..ImageLimits::default() }
}

pub(crate) async fn read(
    sandbox: &Sandbox,
    kind: ImageKind,
    bytes: &[u8],
    limits: ImageLimits,
) -> Result<ImageFacts, DocumentProblem> {
    sandbox.read_image(kind, STANDARD.encode(bytes), limits).await.unwrap()
}

pub(crate) fn is_damaged(read: &Result<ImageFacts, DocumentProblem>) -> bool {
    matches!(read, Err(DocumentProblem::Damaged(_)))
}

pub(crate) fn is_too_large(read: &Result<ImageFacts, DocumentProblem>) -> bool {
    matches!(read, Err(DocumentProblem::TooLarge(_)))
}

pub(crate) fn encoded(kind: ImageKind, image: &RgbImage) -> Vec<u8> {
    let mut bytes = Vec::new();
    let image = DynamicImage::from(image.clone());
    let written = match kind {
        ImageKind::Png => image.write_with_encoder(PngEncoder::new(&mut bytes)),
        ImageKind::Jpeg => image.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, 95)),
        ImageKind::Gif => GifEncoder::new(&mut bytes).encode_frame(Frame::new(image.into_rgba8())),
        ImageKind::Webp => image.write_with_encoder(WebPEncoder::new_lossless(&mut bytes)),
    };
    written.unwrap();
    bytes
}

/// Blue with a red left quarter.
pub(crate) fn flag(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, _| if x < width / 4 { RED } else { BLUE })
}

fn preview(facts: &ImageFacts) -> DynamicImage {
    let bytes = STANDARD.decode(facts.preview.as_ref().expect("it has a preview")).unwrap();
    assert!(bytes.len() <= 1 << 20, "{} bytes", bytes.len());
    image::load_from_memory_with_format(&bytes, ImageFormat::WebP).unwrap()
}

/// Random numbers, identical in each test run.
pub(crate) fn random() -> impl FnMut(usize) -> usize {
    let mut random = 7_u64;
    move |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(random >> 33).unwrap() % below
    }
}

/// A TIFF header with an orientation tag and a text.
fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif.extend(b"canary of the place");
    exif
}

/// A JPEG with an orientation and, as cameras write it, a small JPEG in its metadata.
pub(crate) fn photo(image: &RgbImage, orientation: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, 95);
    let mut metadata = exif(orientation);
    metadata.extend(encoded(ImageKind::Jpeg, &flag(8, 8)));
    encoder.set_exif_metadata(metadata).unwrap();
    encoder.encode_image(image).unwrap();
    bytes
}

#[tokio::test]
async fn a_small_image_of_every_format_needs_no_preview() {
    let sandbox = sandbox(1);
    for kind in KINDS {
        let facts = read(&sandbox, kind, &encoded(kind, &flag(40, 30)), limits()).await;
        let blue = ImageFacts { width: 40, height: 30, colour: "blue".into(), preview: None };
        assert_eq!(facts, Ok(blue), "{kind:?}");
    }
}

#[tokio::test]
async fn a_large_image_of_every_format_has_a_smaller_preview() {
    let sandbox = sandbox(1);
    let small = ImageLimits { side: 64, ..limits() };
    for kind in KINDS {
        let bytes = encoded(kind, &flag(200, 100));
        let facts = read(&sandbox, kind, &bytes, small).await.unwrap();
        assert_eq!((facts.width, facts.height, facts.colour.as_str()), (200, 100, "blue"));
        let preview = preview(&facts);
        assert_eq!(preview.dimensions(), (64, 32), "{kind:?}");
        let [left, right] = [(4, 16), (40, 16)].map(|(x, y)| preview.get_pixel(x, y).0);
        assert!(left[0] > 200 && left[2] < 60 && right[0] < 60 && right[2] > 200, "{left:?} {right:?}");
        // Few pixels but many bytes: the preview keeps the size.
        let few = ImageLimits { bytes: 10, ..limits() };
        let facts = read(&sandbox, kind, &bytes, few).await.unwrap();
        assert_eq!(self::preview(&facts).dimensions(), (200, 100), "{kind:?}");
    }
    for (width, height, scaled) in [(3000, 1, (64, 1)), (1, 3000, (1, 64)), (65, 64, (64, 63))] {
        let facts =
            read(&sandbox, ImageKind::Png, &encoded(ImageKind::Png, &flag(width, height)), small).await;
        assert_eq!(preview(&facts.unwrap()).dimensions(), scaled);
    }
}

#[tokio::test]
async fn a_preview_that_would_be_too_large_becomes_smaller() {
    let sandbox = sandbox(1);
    let mut draw = random();
    let noise = RgbImage::from_fn(700, 600, |_, _| Rgb([(); 3].map(|()| u8::try_from(draw(256)).unwrap())));
    let bytes = encoded(ImageKind::Png, &noise);
    let facts = read(&sandbox, ImageKind::Png, &bytes, limits()).await.unwrap();
    assert_eq!(preview(&facts).dimensions(), (525, 450));
}

#[tokio::test]
async fn every_kind_of_pixel_has_a_preview() {
    let sandbox = sandbox(1);
    let flag = DynamicImage::from(flag(100, 50));
    let images: [DynamicImage; 7] = [
        flag.to_luma8().into(),
        flag.to_luma_alpha8().into(),
        flag.to_rgba8().into(),
        flag.to_luma16().into(),
        flag.to_luma_alpha16().into(),
        flag.to_rgb16().into(),
        flag.to_rgba16().into(),
    ];
    for image in images {
        let mut bytes = Vec::new();
        image.write_with_encoder(PngEncoder::new(&mut bytes)).unwrap();
        let facts =
            read(&sandbox, ImageKind::Png, &bytes, ImageLimits { side: 50, ..limits() }).await.unwrap();
        let preview = preview(&facts);
        assert_eq!((preview.dimensions(), facts.width), ((50, 25), 100), "{:?}", image.color());
        assert_eq!(preview.color().has_alpha(), image.color().has_alpha(), "{:?}", image.color());
    }
}

#[tokio::test]
async fn the_dominant_colour_has_a_basic_name() {
    let sandbox = sandbox(1);
    let table: [(&str, &[[u8; 3]]); 12] = [
        ("black", &[[0, 0, 0], [30, 20, 25], [42, 41, 40]]),
        ("white", &[[255, 255, 255], [245, 245, 220], [240, 248, 255]]),
        ("gray", &[[128, 128, 128], [60, 60, 64], [200, 205, 200]]),
        ("red", &[[255, 0, 0], [220, 20, 60], [128, 0, 0]]),
        ("orange", &[[255, 165, 0], [255, 127, 80], [210, 105, 30]]),
        ("yellow", &[[255, 255, 0], [255, 215, 0], [240, 230, 140]]),
        ("green", &[[0, 128, 0], [0, 255, 0], [107, 142, 35], [46, 139, 87]]),
        ("cyan", &[[0, 255, 255], [64, 224, 208], [0, 128, 128]]),
        ("blue", &[[0, 0, 255], [0, 0, 128], [70, 130, 180], [65, 105, 225]]),
        ("purple", &[[128, 0, 128], [138, 43, 226], [147, 112, 219]]),
        ("pink", &[[255, 192, 203], [255, 105, 180], [255, 20, 147]]),
        ("brown", &[[139, 69, 19], [160, 82, 45], [101, 67, 33], [210, 180, 140]]),
    ];
    for (name, colours) in table {
        for colour in colours {
            let bytes = encoded(ImageKind::Png, &RgbImage::from_pixel(4, 4, Rgb(*colour)));
            let facts = read(&sandbox, ImageKind::Png, &bytes, limits()).await.unwrap();
            assert_eq!(facts.colour, name, "{colour:?}");
        }
    }
    // The transparent part is larger and would be red.
    let alpha = |share: u32| {
        let pixel = |x, _| if x < share { Rgba([255, 0, 0, 0]) } else { Rgba([0, 200, 0, 9]) };
        let mut bytes = Vec::new();
        RgbaImage::from_fn(100, 10, pixel).write_with_encoder(PngEncoder::new(&mut bytes)).unwrap();
        bytes
    };
    for (share, name) in [(90, "green"), (100, "transparent")] {
        let facts = read(&sandbox, ImageKind::Png, &alpha(share), limits()).await.unwrap();
        assert_eq!(facts.colour, name);
    }
}

#[tokio::test]
async fn the_orientation_of_a_photo_is_applied_and_its_metadata_left_out() {
    let sandbox = sandbox(1);
    let small = ImageLimits { side: 80, ..limits() };
    // The red part is on the left; per orientation, a preview pixel that must be red.
    let table = [
        (1, (160, 80), (4, 20)),
        (2, (160, 80), (75, 20)),
        (3, (160, 80), (75, 20)),
        (4, (160, 80), (4, 20)),
        (5, (80, 160), (20, 4)),
        (6, (80, 160), (20, 4)),
        (7, (80, 160), (20, 75)),
        (8, (80, 160), (20, 75)),
        (0, (160, 80), (4, 20)),
        (9, (160, 80), (4, 20)),
    ];
    for (orientation, (width, height), (x, y)) in table {
        let bytes = photo(&flag(160, 80), orientation);
        assert!(bytes.windows(6).any(|part| part == b"canary"));
        let facts = read(&sandbox, ImageKind::Jpeg, &bytes, small).await.unwrap();
        assert_eq!((facts.width, facts.height), (width, height), "{orientation}");
        let image = preview(&facts);
        assert_eq!(image.dimensions(), (width / 2, height / 2), "{orientation}");
        let pixel = image.get_pixel(x, y).0;
        assert!(pixel[0] > 180 && pixel[2] < 80, "{orientation}: {pixel:?}");
        let bytes = STANDARD.decode(facts.preview.unwrap()).unwrap();
        for metadata in [&b"canary"[..], b"EXIF", b"MM\0"] {
            assert!(!bytes.windows(metadata.len()).any(|part| part == metadata), "{metadata:?}");
        }
    }
    let own = read(&sandbox, ImageKind::Jpeg, &photo(&flag(160, 80), 6), limits()).await.unwrap();
    assert_eq!((own.width, own.height, own.preview), (80, 160, None));
}

#[tokio::test]
async fn the_first_frame_of_an_animation_is_its_preview() {
    let sandbox = sandbox(1);
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for colour in [RED, BLUE, BLUE] {
        let frame = DynamicImage::from(RgbImage::from_pixel(90, 60, colour)).into_rgba8();
        encoder.encode_frame(Frame::new(frame)).unwrap();
    }
    drop(encoder);
    let facts = read(&sandbox, ImageKind::Gif, &bytes, ImageLimits { side: 30, ..limits() }).await.unwrap();
    assert_eq!((facts.width, facts.height, facts.colour.as_str()), (90, 60, "red"));
    assert_eq!(preview(&facts).get_pixel(10, 10).0, [230, 20, 20, 255]);
    // The animation's canvas, its header and the first frame.
    let frame = encoded(ImageKind::Webp, &RgbImage::from_pixel(90, 60, RED));
    let chunk =
        |name: &[u8], body: &[u8]| [name, &u32::try_from(body.len()).unwrap().to_le_bytes(), body].concat();
    let canvas = [2, 0, 0, 0, 89, 0, 0, 59, 0, 0];
    let place = [0, 0, 0, 0, 0, 0, 89, 0, 0, 59, 0, 0, 100, 0, 0, 0];
    let parts = [
        b"WEBP".to_vec(),
        chunk(b"VP8X", &canvas),
        chunk(b"ANIM", &[0; 6]),
        chunk(b"ANMF", &[&place[..], &frame[12..]].concat()),
    ];
    let webp = chunk(b"RIFF", &parts.concat());
    let facts = read(&sandbox, ImageKind::Webp, &webp, limits()).await;
    assert_eq!(facts, Ok(ImageFacts { width: 90, height: 60, colour: "red".into(), preview: None }));
}

#[tokio::test]
async fn an_incomplete_image_or_one_of_another_kind_is_damaged() {
    let sandbox = sandbox(1);
    let mut draw = random();
    let noise = RgbImage::from_fn(64, 64, |_, _| Rgb([(); 3].map(|()| u8::try_from(draw(256)).unwrap())));
    for kind in KINDS {
        let good = if kind == ImageKind::Jpeg { photo(&noise, 1) } else { encoded(kind, &noise) };
        for length in (0..16).map(|part| good.len() * part / 16) {
            let cut = read(&sandbox, kind, &good[..length], limits()).await;
            assert!(is_damaged(&cut), "{kind:?}, {length} of {} bytes: {cut:?}", good.len());
        }
        for other in KINDS.into_iter().filter(|other| *other != kind) {
            let wrong = read(&sandbox, other, &good, limits()).await;
            assert!(is_damaged(&wrong), "{kind:?} as {other:?}: {wrong:?}");
        }
        for garbage in
            [&b""[..], b"no image", &[0; 4096], &[0xff; 4096], b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xd9"]
        {
            let result = read(&sandbox, kind, garbage, limits()).await;
            assert!(is_damaged(&result), "{kind:?}: {result:?}");
        }
        let after = read(&sandbox, kind, &[&good[..], b"more"].concat(), limits()).await;
        assert!(after.is_ok(), "bytes after a {kind:?} do no harm: {after:?}");
    }
    let not_base64 = sandbox.read_image(ImageKind::Png, "*".into(), limits()).await.unwrap();
    assert!(is_damaged(&not_base64), "{not_base64:?}");
}
