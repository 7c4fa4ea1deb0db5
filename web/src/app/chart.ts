/* ECharts, as little of it as we need; a file of its own, so that it is loaded only when a chart is
 * shown. */
import { BarChart } from "echarts/charts";
import { AriaComponent, GridComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";

use([BarChart, GridComponent, TooltipComponent, AriaComponent, SVGRenderer]);
export { init };
