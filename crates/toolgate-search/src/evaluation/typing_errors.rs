//! Adds typing errors to queries.

use super::bootstrap::Random;

/// Words with fewer letters stay, because nobody can guess what they were.
const SHORTEST: usize = 5;

/// The text with so many typing errors, each in another word, as far as there are words: two
/// letters exchanged, one missing, one twice or another one. The first letter stays.
///
/// The errors depend on the text and `seed` only.
pub fn with_typing_errors(text: &str, errors: usize, seed: u64) -> String {
    let mut random = Random::new(
        text.bytes().fold(seed, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)),
    );
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let is_long = |word: &String| {
        word.len() >= SHORTEST && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let mut places: Vec<usize> = (0..words.len()).filter(|place| is_long(&words[*place])).collect();
    for _ in 0..errors.min(places.len()) {
        let place = places.swap_remove(random.below(places.len()));
        let mut letters: Vec<char> = words[place].chars().collect();
        let at = 1 + random.below(letters.len() - 2);
        match random.below(4) {
            0 => letters.swap(at, at + 1),
            1 => drop(letters.remove(at)),
            2 => letters.insert(at, letters[at]),
            _ => {
                let letter = u8::try_from(random.below(26)).unwrap_or_default();
                letters[at] = char::from(b'a' + letter);
            }
        }
        words[place] = letters.into_iter().collect();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_so_many_words_and_always_the_same() {
        let text = "send a message to the whole channel about version 2.0";
        for errors in 0..4 {
            let wrong = with_typing_errors(text, errors, 1);
            assert_eq!(wrong, with_typing_errors(text, errors, 1));
            let changed =
                wrong.split(' ').zip(text.split(' ')).filter(|(wrong, word)| wrong != word);
            assert!(changed.count() <= errors, "{wrong}");
        }
        assert_ne!(with_typing_errors(text, 2, 1), text);
        assert_eq!(with_typing_errors("a b c", 2, 1), "a b c");
    }
}
