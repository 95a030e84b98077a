//! Layers and losses.

pub mod resample;

crate::ops::family! {
    attention conv ctc distance dropout embedding fold interpolate loss nll norm pad pool rnn softmax
    window
}
