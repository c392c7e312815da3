
#include <eml_net.h>
static const float mynet_layer_0_biases[2] = { 0.224265f, -0.339776f };
static const float mynet_layer_0_weights[98] = { 0.129465f, -0.000000f, 1.374288f, 0.000000f, 2.355160f, 0.000000f, 2.670337f, 0.000000f, 2.885431f, 0.000000f, 1.961657f, 0.000000f, 0.866365f, -0.000000f, 0.087408f, 0.000000f, 0.297127f, 0.000000f, 0.878062f, -0.000000f, 1.258189f, 0.000000f, 0.737042f, 0.000000f, -0.563412f, -0.000000f, 0.726129f, 0.000000f, -0.487504f, 0.000000f, -0.860957f, 0.000000f, -0.768927f, -0.000000f, -0.035003f, -0.000000f, -0.174292f, -0.000000f, 0.756437f, -0.000000f, 1.778195f, -0.000000f, -1.122382f, -0.000000f, -1.309783f, -0.000000f, 0.734289f, 0.000000f, -0.926577f, -0.000000f, -1.777077f, -0.000000f, 0.524666f, -0.000000f, 2.204485f, 0.000000f, 0.660697f, 0.000000f, 1.561086f, -0.000000f, 0.516847f, -0.000000f, -1.232078f, -0.000000f, 0.749850f, 0.000000f, 1.585775f, -0.000000f, 2.183135f, 0.000000f, 1.632592f, 0.000000f, 1.636849f, 0.000000f, 1.581772f, 0.000000f, 1.071063f, 0.000000f, 0.720124f, 0.000000f, 0.421020f, 0.000000f, 0.928955f, 0.000000f, 0.568198f, -0.000000f, -0.990447f, 0.000000f, -0.330708f, 0.000000f, 0.278280f, -0.000000f, -0.593908f, 0.000000f, -1.367330f, 0.000000f, 0.405472f, 0.000000f };
static const float mynet_layer_1_biases[10] = { -3.010388f, 1.933432f, -1.013091f, -0.927354f, 1.744399f, -0.384565f, -0.399460f, 1.923891f, 0.436434f, 1.836591f };
static const float mynet_layer_1_weights[20] = { 1.601932f, -1.990084f, 1.003623f, 0.967194f, -1.840276f, 0.689421f, 0.736456f, -2.448796f, 0.276610f, -2.202048f, 0.000000f, 0.000000f, -0.000000f, 0.000000f, 0.000000f, 0.000000f, 0.000000f, -0.000000f, 0.000000f, 0.000000f };
static float mynet_buf1[49];
static float mynet_buf2[49];
static const EmlNetLayer mynet_layers[2] = { 
{ 2, 49, mynet_layer_0_weights, mynet_layer_0_biases, EmlNetActivationRelu }, 
{ 10, 2, mynet_layer_1_weights, mynet_layer_1_biases, EmlNetActivationSoftmax } };
static EmlNet mynet = { 2, mynet_layers, mynet_buf1, mynet_buf2, 49 };

    int32_t
    mynet_predict(const float *features, int32_t n_features)
    {
        return eml_net_predict(&mynet, features, n_features);
    }
    

    int32_t
    mynet_regress(const float *features, int32_t n_features, float *out, int32_t out_length)
    {
        return eml_net_regress(&mynet, features, n_features, out, out_length);
    }
    

    float
    mynet_regress1(const float *features, int32_t n_features)
    {
        return eml_net_regress1(&mynet, features, n_features);
    }
    