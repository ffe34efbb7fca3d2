use tidegate_engine::Tokens;

/// How a model charges for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageRule {
    /// The image is shrunk into 2048 × 2048, then until its short side is 768, and covered with squares of 512: each
    /// costs `tile`, and the image `base`. With low detail it costs `base` alone.
    Tiles { base: u32, tile: u32 },
    /// The image is covered with squares of `edge` pixels; if that takes more than `limit`, it is shrunk until it does not.
    /// Each costs `percent` hundredths of a token. The detail makes no difference: some of these models ignore it,
    /// and a count that is too high is safer than one that is too low.
    Patches { edge: u32, limit: u32, percent: u32 },
    /// Each square of `edge` pixels costs `cell`, and an image of at most half an edge one `cell`.
    Grid { edge: u32, cell: u32 },
}

impl ImageRule {
    /// gpt-4o's rule, for models whose own is not known.
    pub const DEFAULT: ImageRule = ImageRule::Tiles { base: 85, tile: 170 };

    /// The tokens of an image. One whose size cannot be known, because it lies behind a link, counts as 1024 × 1024.
    #[must_use]
    pub fn tokens(self, detail: Detail, size: Option<Pixels>) -> Tokens {
        let size = size.unwrap_or(Pixels::ASSUMED);
        match (self, detail) {
            (ImageRule::Tiles { base, .. }, Detail::Low) => Tokens(base.into()),
            (ImageRule::Tiles { base, tile }, Detail::High) => {
                Tokens(u64::from(base) + tiles(size) * u64::from(tile))
            }
            (ImageRule::Patches { edge, limit, percent }, _) => {
                Tokens((patches(size, edge, limit) * u64::from(percent)).div_ceil(100))
            }
            (ImageRule::Grid { edge, cell }, _) => Tokens(cells(size, edge) * u64::from(cell)),
        }
    }
}

/// How closely the model is asked to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    Low,
    /// Also `auto`, `original`, and whatever comes next: what `auto` picks is the provider's secret, and the dearer reading
    /// is the safe one.
    #[default]
    High,
}

impl Detail {
    /// The request's `detail` field.
    #[must_use]
    pub fn from_field(detail: Option<&str>) -> Detail {
        match detail {
            Some("low") => Detail::Low,
            Some(_) | None => Detail::High,
        }
    }
}

/// The size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
}

impl Pixels {
    /// What an image of unknown size is taken for.
    pub const ASSUMED: Pixels = Pixels { width: 1_024, height: 1_024 };

    fn sides(self) -> (f64, f64) {
        (f64::from(self.width.max(1)), f64::from(self.height.max(1)))
    }
}

fn tiles(size: Pixels) -> u64 {
    let (width, height) = size.sides();
    let fit = (2_048.0 / width.max(height)).min(1.0);
    let (width, height) = (width * fit, height * fit);
    let shrink = (768.0 / width.min(height)).min(1.0);
    covering(width * shrink, 512.0) * covering(height * shrink, 512.0)
}

fn patches(size: Pixels, edge: u32, limit: u32) -> u64 {
    let (width, height) = size.sides();
    let (edge, limit) = (f64::from(edge), f64::from(limit));
    let plain = covering(width, edge) * covering(height, edge);
    if plain as f64 <= limit {
        return plain;
    }
    // The area that `limit` patches cover, then a little smaller so that one side is a whole number of patches.
    let shrink = (edge * edge * limit / (width * height)).sqrt();
    let (across, down) = (width * shrink / edge, height * shrink / edge);
    let whole = (across.floor().max(1.0) / across).min(down.floor().max(1.0) / down).min(1.0);
    let patches = covering(across * whole, 1.0) * covering(down * whole, 1.0);
    patches.min(limit as u64)
}

fn cells(size: Pixels, edge: u32) -> u64 {
    let (width, height) = size.sides();
    let edge = f64::from(edge);
    if width.max(height) <= edge / 2.0 { 1 } else { covering(width, edge) * covering(height, edge) }
}

/// How many steps cover a length. Scaling leaves a whole number a hair too high at times, which must not cost a step.
fn covering(length: f64, step: f64) -> u64 {
    ((length / step - 1e-9).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: ImageRule, detail: &str, size: (u32, u32), tokens: u64) {
        let size = Pixels { width: size.0, height: size.1 };
        assert_eq!(rule.tokens(Detail::from_field(Some(detail)), Some(size)), Tokens(tokens), "{size:?}");
    }

    #[test]
    fn tiles_follow_the_published_examples() {
        check(ImageRule::DEFAULT, "high", (1_024, 1_024), 765);
        check(ImageRule::DEFAULT, "high", (2_048, 4_096), 1_105);
        check(ImageRule::DEFAULT, "low", (4_096, 8_192), 85);
        check(ImageRule::DEFAULT, "auto", (512, 512), 255);
        check(ImageRule::DEFAULT, "high", (513, 512), 425);
        check(ImageRule::Tiles { base: 2_833, tile: 5_667 }, "high", (1_024, 1_024), 25_501);
        check(ImageRule::Tiles { base: 70, tile: 140 }, "high", (1, 1), 210);
    }

    #[test]
    fn patches_follow_the_published_examples() {
        let plain = ImageRule::Patches { edge: 32, limit: 1_536, percent: 100 };
        check(plain, "high", (1_024, 1_024), 1_024);
        check(plain, "high", (1_800, 2_400), 1_452);
        check(ImageRule::Patches { edge: 32, limit: 1_536, percent: 162 }, "low", (1_024, 1_024), 1_659);
        check(ImageRule::Patches { edge: 32, limit: 1_536, percent: 120 }, "high", (2_048, 768), 1_844);
        check(plain, "high", (u32::MAX, 1), 1_536);
        check(plain, "high", (0, 0), 1);
    }

    #[test]
    fn grids_count_their_cells() {
        let grid = ImageRule::Grid { edge: 768, cell: 258 };
        check(grid, "auto", (384, 384), 258);
        check(grid, "auto", (769, 768), 516);
        check(grid, "auto", (u32::MAX, u32::MAX), 258 * 5_592_406 * 5_592_406);
    }

    #[test]
    fn an_image_of_unknown_size_is_a_square_of_1024() {
        assert_eq!(ImageRule::DEFAULT.tokens(Detail::High, None), Tokens(765));
    }
}
