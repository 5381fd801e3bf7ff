//! The ops whose operations are counted. Argument numbers are those of PyTorch's schemas (`native_functions.yaml`).

use super::formulas::{
    Arguments, Attention, ConvolutionArguments, Corner, Found, Layout, Transposed, attention,
    batched_matmul, convolution, convolution_backward, dot, linear, matmul, matrix_vector,
    slow_convolution,
};

/// How the operations of an op are counted.
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// A product of matrices at this argument and the next; with a bias or without.
    Matmul(usize, bool),
    /// The same of batches.
    BatchedMatmul(usize, bool),
    /// A product with a transposed weight.
    Linear,
    /// A matrix at this argument times a vector.
    MatrixVector(usize),
    /// A scalar product.
    Dot,
    /// A convolution.
    Convolution(ConvolutionArguments),
    /// One without dilation.
    SlowConvolution,
    /// Its backward pass.
    ConvolutionBackward,
    /// Attention.
    Attention(Attention),
}

impl Formula {
    /// The operations of a call.
    pub fn evaluate(self, args: &Arguments) -> Found {
        match self {
            Self::Matmul(at, bias) => matmul(args, at, bias),
            Self::BatchedMatmul(at, bias) => batched_matmul(args, at, bias),
            Self::Linear => linear(args),
            Self::MatrixVector(at) => matrix_vector(args, at),
            Self::Dot => dot(args),
            Self::Convolution(at) => convolution(args, at),
            Self::SlowConvolution => slow_convolution(args),
            Self::ConvolutionBackward => convolution_backward(args),
            Self::Attention(at) => attention(args, at),
        }
    }
}

const fn conv(stride: usize, padding: usize, dilation: usize, transposed: Transposed) -> Formula {
    Formula::Convolution(ConvolutionArguments { stride, padding, dilation, transposed })
}

/// Attention with dimensions in the order batch, heads, sequence, size.
const fn sdpa(query: usize, causal: usize, backward: bool) -> Formula {
    Formula::Attention(Attention {
        query,
        layout: Layout::HeadsFirst,
        causal,
        mask_number: false,
        backward,
        packed: None,
        corner: Corner::TopLeft,
    })
}

/// Flash attention: sequence before heads, the mask aligned at the bottom right.
const fn flash(query: usize, causal: usize, backward: bool, packed: Option<usize>) -> Formula {
    Formula::Attention(Attention {
        query,
        layout: Layout::SequenceFirst,
        causal,
        mask_number: false,
        backward,
        packed,
        corner: Corner::BottomRight,
    })
}

/// Memory-efficient attention: the mask is a number.
const fn efficient(query: usize, mask: usize, backward: bool, packed: usize) -> Formula {
    Formula::Attention(Attention {
        query,
        layout: Layout::SequenceFirst,
        causal: mask,
        mask_number: true,
        backward,
        packed: Some(packed),
        corner: Corner::TopLeft,
    })
}

/// Ops of PyTorch.
const OPS: &[(&str, Formula)] = &[
    ("aten::mm", Formula::Matmul(0, false)),
    ("aten::addmm", Formula::Matmul(1, true)),
    ("aten::_addmm_activation", Formula::Matmul(1, true)),
    ("aten::_int_mm", Formula::Matmul(0, false)),
    ("aten::_scaled_mm", Formula::Matmul(0, false)),
    ("aten::bmm", Formula::BatchedMatmul(0, false)),
    ("aten::baddbmm", Formula::BatchedMatmul(1, true)),
    ("aten::linear", Formula::Linear),
    ("aten::mv", Formula::MatrixVector(0)),
    ("aten::addmv", Formula::MatrixVector(1)),
    ("aten::dot", Formula::Dot),
    ("aten::vdot", Formula::Dot),
    ("aten::conv1d", conv(3, 4, 5, Transposed::No)),
    ("aten::conv2d", conv(3, 4, 5, Transposed::No)),
    ("aten::conv3d", conv(3, 4, 5, Transposed::No)),
    ("aten::convolution", conv(3, 4, 5, Transposed::At(6))),
    ("aten::_convolution", conv(3, 4, 5, Transposed::At(6))),
    ("aten::convolution_overrideable", conv(3, 4, 5, Transposed::At(6))),
    ("aten::cudnn_convolution", conv(3, 2, 4, Transposed::No)),
    ("aten::cudnn_convolution_transpose", conv(4, 2, 5, Transposed::Yes)),
    ("aten::cudnn_convolution_relu", conv(3, 4, 5, Transposed::No)),
    ("aten::cudnn_convolution_add_relu", conv(5, 6, 7, Transposed::No)),
    ("aten::miopen_convolution", conv(4, 3, 5, Transposed::No)),
    ("aten::miopen_depthwise_convolution", conv(4, 3, 5, Transposed::No)),
    ("aten::miopen_convolution_transpose", conv(5, 3, 6, Transposed::Yes)),
    ("aten::mkldnn_convolution", conv(4, 3, 5, Transposed::No)),
    ("aten::_conv_depthwise2d", conv(4, 5, 6, Transposed::No)),
    ("aten::thnn_conv2d", Formula::SlowConvolution),
    ("aten::_slow_conv2d_forward", Formula::SlowConvolution),
    ("aten::conv_transpose1d", conv(3, 4, 7, Transposed::Yes)),
    ("aten::conv_transpose2d", conv(3, 4, 7, Transposed::Yes)),
    ("aten::conv_transpose3d", conv(3, 4, 7, Transposed::Yes)),
    ("aten::convolution_backward", Formula::ConvolutionBackward),
    ("aten::scaled_dot_product_attention", sdpa(0, 5, false)),
    ("aten::_scaled_dot_product_attention_math", sdpa(0, 5, false)),
    ("aten::_scaled_dot_product_flash_attention", sdpa(0, 4, false)),
    ("aten::_scaled_dot_product_efficient_attention", sdpa(0, 6, false)),
    ("aten::_scaled_dot_product_cudnn_attention", sdpa(0, 6, false)),
    ("aten::_flash_attention_forward", flash(0, 8, false, Some(3))),
    ("aten::_efficient_attention_forward", efficient(0, 9, false, 4)),
    ("aten::_scaled_dot_product_flash_attention_backward", sdpa(1, 11, true)),
    ("aten::_scaled_dot_product_efficient_attention_backward", sdpa(1, 11, true)),
    ("aten::_scaled_dot_product_cudnn_attention_backward", sdpa(1, 13, true)),
    ("aten::_flash_attention_backward", flash(1, 11, true, Some(6))),
    ("aten::_efficient_attention_backward", efficient(1, 14, true, 6)),
];

/// Ops of extensions: not in the totals, because the table of PyTorch's ops is what others count, too.
const CUSTOM: &[(&str, Formula)] = &[
    ("vllm::rocm_unquantized_gemm", Formula::Linear),
    ("aiter::gemm_a16w16", Formula::Linear),
    ("aiter::fmha_v3_fwd", flash(0, 5, false, None)),
];

fn find(table: &[(&str, Formula)], op: &str) -> Option<Formula> {
    table.iter().find(|(name, _)| *name == op).map(|(_, formula)| *formula)
}

/// How an op of PyTorch is counted.
#[must_use]
pub fn formula(op: &str) -> Option<Formula> {
    find(OPS, op)
}

/// How an op of an extension is counted.
#[must_use]
pub fn custom(op: &str) -> Option<Formula> {
    find(CUSTOM, op)
}
