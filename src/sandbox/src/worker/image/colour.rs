//! Names an image's dominant colour.

use std::collections::BTreeMap;

use image::{DynamicImage, Rgba};

/// Maximum side of the image whose pixels are counted.
const SIDE: u32 = 64;

/// Returns the most frequent colour; fully transparent pixels are ignored.
pub(super) fn dominant(image: &DynamicImage) -> &'static str {
    let is_small = image.width().max(image.height()) <= SIDE;
    let pixels = if is_small { image.to_rgba8() } else { image.thumbnail(SIDE, SIDE).into_rgba8() };
    let mut counts = BTreeMap::<&str, usize>::new();
    for Rgba([red, green, blue, alpha]) in pixels.pixels() {
        if *alpha > 0 {
            *counts.entry(name(*red, *green, *blue)).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or("transparent", |(name, _)| name)
}

/// Names a pixel's basic colour: by hue, and by brightness where it changes the name.
fn name(red: u8, green: u8, blue: u8) -> &'static str {
    let [red, green, blue] = [red, green, blue].map(i32::from);
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let (chroma, light) = (most - least, i32::midpoint(most, least));
    if most < 40 {
        return "black";
    }
    // Percentage of the brightest channel.
    let saturation = chroma * 100 / most;
    if saturation < 12 || chroma < 16 {
        return match light {
            ..45 => "black",
            45..220 => "gray",
            _ => "white",
        };
    }
    let hue = if most == red {
        60 * (green - blue) / chroma
    } else if most == green {
        120 + 60 * (blue - red) / chroma
    } else {
        240 + 60 * (red - green) / chroma
    };
    match hue.rem_euclid(360) {
        0..15 | 345.. if light >= 170 => "pink",
        0..15 | 345.. => "red",
        15..48 if most < 190 || (saturation < 50 && most < 230) => "brown",
        15..45 => "orange",
        45..68 => "yellow",
        68..160 => "green",
        160..195 => "cyan",
        195..258 => "blue",
        258..312 => "purple",
        _ => "pink",
    }
}
