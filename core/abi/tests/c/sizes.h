/* Prints the size of every struct, in the order of docs/layout.txt. */
#include <stdio.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(type))

static void print_sizes(void)
{
    SIZE(TenonStr);
    SIZE(TenonStrs);
    SIZE(TenonDims);
    SIZE(TenonRange);
    SIZE(TenonSource);
    SIZE(TenonExtHeader);
    SIZE(TenonExtCost);
    SIZE(TenonExtCases);
    SIZE(TenonExtBench);
    SIZE(TenonFacts);
    SIZE(TenonExtFacts);
    SIZE(TenonExtPass);
    SIZE(TenonExtVariant);
    SIZE(TenonExtNative);
    SIZE(TenonExtNativeOf);
    SIZE(TenonExtFunctions);
    SIZE(TenonExtGradient);
    SIZE(TenonExtHandles);
    SIZE(TenonExtTimers);
    SIZE(TenonExtCapture);
    SIZE(TenonNativeHandles);
    SIZE(TenonEdge);
    SIZE(TenonPassAttr);
    SIZE(TenonPassNode);
    SIZE(TenonPassTable);
    SIZE(TenonGradientParts);
    SIZE(TenonGradientNode);
    SIZE(TenonGradientTable);
    SIZE(TenonSlot);
    SIZE(TenonStringElement);
    SIZE(TenonResourceElement);
    SIZE(TenonVariantElement);
    SIZE(TenonAttrView);
    SIZE(TenonShapeView);
    SIZE(TenonFuncView);
    SIZE(TenonCreate);
    SIZE(TenonStep);
    SIZE(TenonCall);
    SIZE(TenonCallServices);
    SIZE(TenonKernelTable);
    SIZE(TenonOpDef);
    SIZE(TenonTypeConstraint);
    SIZE(TenonInPlace);
    SIZE(TenonNumerics);
    SIZE(TenonKernelDef);
    SIZE(TenonKnobDef);
    SIZE(TenonKnobValue);
    SIZE(TenonHost);
    SIZE(TenonShapeTable);
    SIZE(TenonStringTable);
    SIZE(TenonResourceType);
    SIZE(TenonVariantTable);
    SIZE(TenonStateTable);
    SIZE(TenonMemoryInfo);
    SIZE(TenonDeviceAttributes);
    SIZE(TenonCopyRequest);
    SIZE(TenonDeviceTable);
    SIZE(TenonDeviceTypeDef);
    SIZE(TenonRegistrarTable);
    SIZE(TenonPluginV1);
}
